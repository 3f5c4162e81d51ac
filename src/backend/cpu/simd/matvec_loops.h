// MatvecLoops: a row times a matrix, where what counts is to read the matrix once, at the speed of memory.
//
// The matrix is f32, or bf16 (widened as it is read); the row and the result are f32, sums too. Each element
// of the result is summed in an order that follows from the length of the row alone, so that any cut of the
// result into ranges gives the same bits.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

struct MatvecLoops {
  // out[n] = x · w[n][...] for n in [begin, end); w is [N, K].
  void (*rows_f32)(float* out, const float* x, const float* w, int64_t k, int64_t begin, int64_t end);
  void (*rows_bf16)(float* out, const float* x, const uint16_t* w, int64_t k, int64_t begin, int64_t end);
  // out[n] = sum over k of x[k] w[k][n] for n in [begin, end); w is [K, N].
  void (*columns_f32)(float* out, const float* x, const float* w, int64_t k, int64_t n, int64_t begin,
                      int64_t end);
  void (*columns_bf16)(float* out, const float* x, const uint16_t* w, int64_t k, int64_t n, int64_t begin,
                       int64_t end);
};

namespace avx2 {
extern const MatvecLoops matvec_loops;
}
namespace avx512 {
extern const MatvecLoops matvec_loops;
}

}  // namespace lockstep::cpu
