// Sums of squares of a flat buffer by fixed blocks: the parts of a global norm, and the finite check, in one
// pass.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

inline constexpr int64_t kNormBlock = 1024;
inline constexpr int64_t norm_blocks(int64_t n) { return (n + kNormBlock - 1) / kNormBlock; }

struct Norm2Loops {
  // partials[b] = sum of x[i]^2 over block b of x[0, n), for b in [block_begin, block_end); the caller adds
  // the partials in index order in double. Returns whether every element met was finite. The bits of a
  // partial are the same on every instruction set.
  bool (*block_squares)(const float* x, int64_t n, int64_t block_begin, int64_t block_end, double* partials);
  bool (*block_squares_bf16)(const uint16_t* x, int64_t n, int64_t block_begin, int64_t block_end,
                             double* partials);
};

namespace avx2 {
extern const Norm2Loops norm2_loops;
}
namespace avx512 {
extern const Norm2Loops norm2_loops;
}

}  // namespace lockstep::cpu
