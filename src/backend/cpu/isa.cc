#include "backend/cpu/isa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <dnnl.hpp>
#include <string>

#include "base/error.h"

namespace lockstep::cpu {

std::string_view name_of(Isa isa) { return isa == Isa::kAvx512 ? "avx512" : "avx2"; }

std::string_view bf16_products() {
  // Sets of instructions as bits: not every larger number holds every smaller one.
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto has = [&](dnnl::cpu_isa wanted) {
    return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  if (has(dnnl::cpu_isa::avx512_core_amx)) return "amx_bf16";
  return has(dnnl::cpu_isa::avx512_core_bf16) ? "avx512_bf16" : "";
}

namespace {

// Linux lets a process use the tile registers when it has asked; oneDNN 2.6 does not ask, and its first tile
// instruction would be an illegal one.
bool may_use_tiles() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

void limit_onednn(Isa isa) {
  dnnl_cpu_isa_t most = dnnl_cpu_isa_avx2;
  if (isa == Isa::kAvx512) most = may_use_tiles() ? dnnl_cpu_isa_all : dnnl_cpu_isa_avx512_core_bf16;
  dnnl_set_max_cpu_isa(most);
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
