#include "backend/cpu/simd/draw_loops.h"

#include "backend/cpu/simd/philox_vec.h"
#include "base/draw_arithmetic.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

constexpr int kPairs = 64;

// Loops over pairs, which the compiler turns into vectors of doubles.
int64_t fill_normal(const NormalDraws& normal, uint64_t first, float* out, int64_t count) {
  const PhiloxVec random(normal.seed, normal.stream);
  uint32_t words[2 * kPairs], radius[kPairs], turn[kPairs];
  float even[kPairs], odd[kPairs];
  int64_t done = 0;
  for (; done + 2 * kPairs <= count; done += 2 * kPairs) {
    for (int w = 0; w < 2 * kPairs; w += PhiloxVec::kWords) {
      const PhiloxVec::Words some = random.words((first + static_cast<uint64_t>(done + w)) / 4);
      __builtin_memcpy(words + w, &some, sizeof(some));
    }
    for (int j = 0; j < kPairs; ++j) {
      radius[j] = words[2 * j];
      turn[j] = words[2 * j + 1];
    }
    for (int j = 0; j < kPairs; ++j) {
      const draws::NormalPair pair = draws::normal_pair(radius[j], turn[j]);
      even[j] = pair.even;
      odd[j] = pair.odd;
    }
    for (int j = 0; j < kPairs; ++j) {
      out[done + 2 * j] = normal.mean + normal.deviation * even[j];
      out[done + 2 * j + 1] = normal.mean + normal.deviation * odd[j];
    }
  }
  return done;
}

}  // namespace

extern const DrawLoops draw_loops = {fill_normal};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
