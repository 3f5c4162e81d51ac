// Normal draws over a range of elements, counted by Philox: what parameters begin with.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

struct NormalDraws {
  uint64_t seed, stream;
  float mean, deviation;
};

struct DrawLoops {
  // out[j] is the draw at index first + j, as Philox::fill_normal makes it; `first` is a multiple of 4.
  // Returns how many of the count were drawn: what is left at the end is shorter than a few vectors.
  int64_t (*fill_normal)(const NormalDraws& draws, uint64_t first, float* out, int64_t count);
};

namespace avx2 {
extern const DrawLoops draw_loops;
}
namespace avx512 {
extern const DrawLoops draw_loops;
}

}  // namespace lockstep::cpu
