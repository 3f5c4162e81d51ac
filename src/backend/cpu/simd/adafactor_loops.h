// Adafactor (arXiv 1804.04235), with the learning rate given by the caller (relative step off), for a matrix
// whose second moment is kept as row and column means, and for tensors of one dimension, whose second moment
// is kept whole.
//
// With s = grad_scale * g and update u = s / sqrt(second moment), the step is lr * u / max(1, rms(u) / d):
// two reductions stand in the way, so the work comes in phases that are each parallel over fixed units.
//
// Matrix [rows, cols]:
//   1. row_stats      units of kAdafactorRows rows      row moment, and column sums of the unit
//   2. column_stats   any range of columns              column moment and its factor, from the units' sums in
//   order
//      row_factors    once                              row factors
//   3. update_squares units of kAdafactorRows rows      sum of u^2 of the unit; the caller adds them in order
//   4. apply          any range of rows
// Vector [n]:
//   1. vector_moment  blocks of kNormBlock elements     second moment, and sum of u^2 of the block
//   2. vector_apply   any range of elements
#pragma once
#include <cstdint>

#include "backend/cpu/simd/norm2_loops.h"

namespace lockstep::cpu {

inline constexpr int64_t kAdafactorRows = 32;
inline constexpr int64_t adafactor_units(int64_t rows) {
  return (rows + kAdafactorRows - 1) / kAdafactorRows;
}

struct AdafactorStep {
  float grad_scale;
  float beta2, one_minus_beta2;  // beta2 = 1 - t^-0.8
  float eps;                     // added to the squared gradient (1e-30)
};

// The step's size, known once the update's norm is.
struct AdafactorApply {
  float grad_scale;
  float step_size;               // lr / max(1, rms(u) / d)
  float beta1, one_minus_beta1;  // used where a first moment is kept
  float decay;                   // 1 - lr * weight_decay
};

struct AdafactorLoops {
  // row_moment[rows] is updated; column_sums[units, cols] receives the sums of g^2 + eps over each unit's
  // rows.
  void (*row_stats)(const float* g, int64_t rows, int64_t cols, int64_t unit_begin, int64_t unit_end,
                    const AdafactorStep& step, float* row_moment, float* column_sums);
  // column_moment[cols] is updated; column_factor = 1 / sqrt(column_moment).
  void (*column_stats)(const float* column_sums, int64_t rows, int64_t cols, int64_t col_begin,
                       int64_t col_end, const AdafactorStep& step, float* column_moment,
                       float* column_factor);
  // row_factor = 1 / sqrt(row_moment / mean(row_moment)).
  void (*row_factors)(const float* row_moment, int64_t rows, float* row_factor);
  void (*update_squares)(const float* g, const float* row_factor, const float* column_factor, int64_t rows,
                         int64_t cols, int64_t unit_begin, int64_t unit_end, float grad_scale,
                         double* squares);
  // m is the first moment, or null where none is kept: p = decay p - (m, or the scaled update).
  void (*apply)(float* p, float* m, const float* g, const float* row_factor, const float* column_factor,
                uint16_t* p_bf16, int64_t cols, int64_t row_begin, int64_t row_end,
                const AdafactorApply& step);

  void (*vector_moment)(float* v, const float* g, int64_t n, int64_t block_begin, int64_t block_end,
                        const AdafactorStep& step, double* squares);
  void (*vector_apply)(float* p, float* m, const float* v, const float* g, uint16_t* p_bf16, int64_t begin,
                       int64_t end, const AdafactorApply& step);
};

namespace avx2 {
extern const AdafactorLoops adafactor_loops;
}
namespace avx512 {
extern const AdafactorLoops adafactor_loops;
}

}  // namespace lockstep::cpu
