// The instruction-set classes the loops are compiled for.
#pragma once
#include <string_view>

namespace lockstep::cpu {

enum class Isa { kAvx2, kAvx512 };

std::string_view name_of(Isa isa);
// The widest class of this machine, or the one that LOCKSTEP_ISA (avx2, avx512) asks for. Throws UserError
// when the machine has neither or not the one asked for.
Isa detect_isa();

}  // namespace lockstep::cpu
