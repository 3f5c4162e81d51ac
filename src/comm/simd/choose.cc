#include "comm/simd/sum_loops.h"

namespace lockstep::comm {

const SumLoops& sum_loops() {
  static const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return wide ? avx512::sum_loops : avx2::sum_loops;
}

}  // namespace lockstep::comm
