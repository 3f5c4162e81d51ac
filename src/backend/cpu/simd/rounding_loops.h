// Stochastic rounding of f32 to bf16 over a range of elements; see ops/stochastic_rounding.h.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

struct RoundingLoops {
  // y[i] = x[i] rounded with the draw at index first + i of Philox(seed, stream), for i in [begin, end);
  // first and begin are multiples of 4.
  void (*round_stochastic)(const float* x, uint16_t* y, int64_t begin, int64_t end, int64_t first,
                           uint64_t seed, uint64_t stream);
};

namespace avx2 {
extern const RoundingLoops rounding_loops;
}
namespace avx512 {
extern const RoundingLoops rounding_loops;
}

}  // namespace lockstep::cpu
