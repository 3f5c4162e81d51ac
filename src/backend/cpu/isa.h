// The instruction-set classes the loops are compiled for.
#pragma once
#include <string_view>

namespace lockstep::cpu {

enum class Isa { kAvx2, kAvx512 };

std::string_view name_of(Isa isa);
// The processor's own products of bf16 operands, as oneDNN uses them: "avx512_bf16", or "" where there are
// none. They sum in an order of their own, which only jobs in bf16 can tell (prepare/arithmetic.h).
std::string_view bf16_products();
// Keeps oneDNN to what the class has; before its first use.
void limit_onednn(Isa isa);
// The widest class of this machine, or the one that LOCKSTEP_ISA asks for: avx2, avx512, or avx512_fp32,
// which is avx512 without the processor's products of bf16. Throws UserError when the machine has neither or
// not the one asked for.
Isa detect_isa();

}  // namespace lockstep::cpu
