#include "backend/cpu/simd/rounding_loops.h"

#include "backend/cpu/simd/philox_vec.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// The result is a bf16 already: storing it rounds nothing, but makes NaN canonical.
inline Vec rounded(Vec x, VecWord words) {
  const VecWord bits = (VecWord)x;
  const VecWord sum = (bits + (words >> 16)) & 0xffff0000u;
  return select((VecInt)((bits & 0x7f800000u) == 0x7f800000u), x, (Vec)sum);
}

void round_stochastic(const float* x, uint16_t* y, int64_t begin, int64_t end, int64_t first, uint64_t seed,
                      uint64_t stream) {
  const PhiloxVec random(seed, stream);
  int64_t i = begin;
  for (; i + PhiloxVec::kWords <= end; i += PhiloxVec::kWords) {
    const PhiloxVec::Words words = random.words(static_cast<uint64_t>(first + i) / 4);
    store_bf16(y + i, rounded(load(x + i), words.first));
    store_bf16(y + i + kLanes, rounded(load(x + i + kLanes), words.second));
  }
  if (i >= end) return;
  const PhiloxVec::Words words = random.words(static_cast<uint64_t>(first + i) / 4);
  const int64_t left = end - i < kLanes ? end - i : kLanes;
  store_bf16(y + i, rounded(load(x + i, left), words.first), left);
  if (end - i <= kLanes) return;
  const int64_t rest = end - i - kLanes;
  store_bf16(y + i + kLanes, rounded(load(x + i + kLanes, rest), words.second), rest);
}

}  // namespace

extern const RoundingLoops rounding_loops = {round_stochastic};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
