#include "backend/cpu/isa.h"

#include <cstdlib>
#include <dnnl.hpp>
#include <string_view>

#include "base/error.h"

namespace lockstep::cpu {
namespace {

// AVX-512 as processors have it that know no products of bf16.
constexpr std::string_view kNoBf16 = "avx512_fp32";

std::string_view asked_isa() {
  const char* wanted = std::getenv("LOCKSTEP_ISA");
  return wanted == nullptr ? "" : wanted;
}

}  // namespace

std::string_view name_of(Isa isa) { return isa == Isa::kAvx512 ? "avx512" : "avx2"; }

std::string_view bf16_products() {
  return dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx512_core_bf16 ? "avx512_bf16" : "";
}

// Not dnnl_cpu_isa_all: on processors with AMX oneDNN 2.6 runs tile instructions in threads that have not
// configured tiles, which are illegal ones there.
void limit_onednn(Isa isa) {
  if (isa == Isa::kAvx2)
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
  else
    dnnl_set_max_cpu_isa(asked_isa() == kNoBf16 ? dnnl_cpu_isa_avx512_core : dnnl_cpu_isa_avx512_core_bf16);
}

Isa detect_isa() {
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") != 0 &&
                      __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                      __builtin_cpu_supports("avx512vl") != 0;
  if (!avx2) throw UserError("this processor has no AVX2; the cpu backend needs it");
  const std::string_view name = asked_isa();
  if (name.empty()) return avx512 ? Isa::kAvx512 : Isa::kAvx2;
  if (name == "avx2") return Isa::kAvx2;
  if ((name == "avx512" || name == kNoBf16) && avx512) return Isa::kAvx512;
  throw UserError("LOCKSTEP_ISA={}: use avx2{}", name,
                  avx512 ? ", avx512 or avx512_fp32" : "; this processor has no AVX-512");
}

}  // namespace lockstep::cpu
