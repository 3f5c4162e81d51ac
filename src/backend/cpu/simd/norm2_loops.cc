#include "backend/cpu/simd/norm2_loops.h"

#include "backend/cpu/simd/square_sum.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

bool block_squares(const float* x, int64_t n, int64_t block_begin, int64_t block_end, double* partials) {
  bool finite = true;
  for (int64_t block = block_begin; block < block_end; ++block) {
    const int64_t begin = block * kNormBlock;
    const int64_t end = begin + kNormBlock < n ? begin + kNormBlock : n;
    const double partial = square_sum(begin, end, [x](int64_t i, auto lanes) { return load(x + i, lanes); });
    // An infinity or NaN minus itself is NaN.
    finite &= partial - partial == 0.0;
    partials[block] = partial;
  }
  return finite;
}

}  // namespace

extern const Norm2Loops norm2_loops = {block_squares};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
