// ReduceLoops: reductions of contiguous [rows, cols] blocks along either axis.
//
// Row reductions add in an order fixed by `cols` alone. Column reductions add rows one after another in index
// order, so a caller that cuts the rows in fixed blocks and adds the blocks' partial sums in order gets the
// same bits on any number of threads.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

struct ReduceLoops {
  void (*row_sum)(float* out, const float* x, int64_t rows, int64_t cols);
  void (*row_sum_squares)(float* out, const float* x, int64_t rows, int64_t cols);
  void (*row_dot)(float* out, const float* a, const float* b, int64_t rows, int64_t cols);
  // NaN if the row holds one; -infinity for an empty row.
  void (*row_max)(float* out, const float* x, int64_t rows, int64_t cols);
  // First position of the largest element; a NaN is larger than everything.
  void (*row_argmax)(int32_t* out, const float* x, int64_t rows, int64_t cols);
  // acc[c] += x[0][c], then += x[1][c], ...
  void (*column_sum)(float* acc, const float* x, int64_t rows, int64_t cols);
  void (*accumulate)(float* acc, const float* x, int64_t n);
};

namespace avx2 {
extern const ReduceLoops reduce_loops;
}
namespace avx512 {
extern const ReduceLoops reduce_loops;
}

}  // namespace lockstep::cpu
