#include "backend/cpu/simd/norm2_loops.h"

#include "backend/cpu/simd/square_sum.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// Of the Vecs that vec(first_element, lanes) gives.
template <class Elements>
bool squares(Elements vec, int64_t n, int64_t block_begin, int64_t block_end, double* partials) {
  bool finite = true;
  for (int64_t block = block_begin; block < block_end; ++block) {
    const int64_t begin = block * kNormBlock;
    const int64_t end = begin + kNormBlock < n ? begin + kNormBlock : n;
    const double partial = square_sum(begin, end, vec);
    // An infinity or NaN minus itself is NaN.
    finite &= partial - partial == 0.0;
    partials[block] = partial;
  }
  return finite;
}

bool block_squares(const float* x, int64_t n, int64_t block_begin, int64_t block_end, double* partials) {
  return squares([x](int64_t i, auto lanes) { return load(x + i, lanes); }, n, block_begin, block_end,
                 partials);
}

bool block_squares_bf16(const uint16_t* x, int64_t n, int64_t block_begin, int64_t block_end,
                        double* partials) {
  return squares([x](int64_t i, auto lanes) { return load_bf16(x + i, lanes); }, n, block_begin, block_end,
                 partials);
}

}  // namespace

extern const Norm2Loops norm2_loops = {block_squares, block_squares_bf16};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
