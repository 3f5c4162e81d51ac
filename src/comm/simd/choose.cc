#include "comm/simd/codec_loops.h"
#include "comm/simd/sum_loops.h"

namespace lockstep::comm {
namespace {

bool has_avx512() {
  static const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return wide;
}

}  // namespace

const SumLoops& sum_loops() { return has_avx512() ? avx512::sum_loops : avx2::sum_loops; }
const CodecLoops& codec_loops() { return has_avx512() ? avx512::codec_loops : avx2::codec_loops; }

}  // namespace lockstep::comm
