#include "backend/cpu/isa.h"

#include <cstdlib>
#include <dnnl.hpp>
#include <string>

#include "base/error.h"

namespace lockstep::cpu {

std::string_view name_of(Isa isa) { return isa == Isa::kAvx512 ? "avx512" : "avx2"; }

std::string_view bf16_products() {
  return dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx512_core_bf16 ? "avx512_bf16" : "";
}

// Not dnnl_cpu_isa_all: on processors with AMX oneDNN 2.6 runs tile instructions in threads that have not
// configured tiles, which are illegal ones there.
void limit_onednn(Isa isa) {
  dnnl_set_max_cpu_isa(isa == Isa::kAvx512 ? dnnl_cpu_isa_avx512_core_bf16 : dnnl_cpu_isa_avx2);
}

Isa detect_isa() {
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") != 0 &&
                      __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                      __builtin_cpu_supports("avx512vl") != 0;
  if (!avx2) throw UserError("this processor has no AVX2; the cpu backend needs it");
  const char* wanted = std::getenv("LOCKSTEP_ISA");
  if (wanted == nullptr) return avx512 ? Isa::kAvx512 : Isa::kAvx2;
  const std::string name = wanted;
  if (name == "avx2") return Isa::kAvx2;
  if (name == "avx512" && avx512) return Isa::kAvx512;
  throw UserError("LOCKSTEP_ISA={}: use avx2{}", name,
                  avx512 ? " or avx512" : "; this processor has no AVX-512");
}

}  // namespace lockstep::cpu
