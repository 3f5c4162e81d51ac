// Dropout over a range of elements, its mask drawn from Philox at each element's own index and never stored:
// backward and recompute draw it again.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

// Element i is dropped when Philox(seed, stream).bits(first_index + i) < threshold, that is when
// bernoulli(first_index + i, p) for threshold = Philox::bernoulli_threshold(p).
struct DropoutMask {
  uint64_t seed;
  uint64_t stream;
  uint64_t first_index;
  uint64_t threshold;
  float scale;  // 1 / (1 - p), rounded once
};

struct DropoutLoops {
  // y[i] = kept ? x[i] * scale : 0 for i in [begin, end). y may be x. The same loop carries dy to dx.
  void (*dropout)(const float* x, float* y, int64_t begin, int64_t end, const DropoutMask& mask);
};

namespace avx2 {
extern const DropoutLoops dropout_loops;
}
namespace avx512 {
extern const DropoutLoops dropout_loops;
}

}  // namespace lockstep::cpu
