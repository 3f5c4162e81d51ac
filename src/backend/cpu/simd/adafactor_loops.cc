#include "backend/cpu/simd/adafactor_loops.h"

#include "backend/cpu/simd/square_sum.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

inline int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
inline Vec inverse_sqrt(Vec v) { return broadcast(1.0f) / sqrt(v); }

void row_stats(const float* g, int64_t rows, int64_t cols, int64_t unit_begin, int64_t unit_end,
               const AdafactorStep& step, float* row_moment, float* column_sums) {
  const Vec grad_scale = broadcast(step.grad_scale), eps = broadcast(step.eps);
  for (int64_t unit = unit_begin; unit < unit_end; ++unit) {
    float* sums = column_sums + unit * cols;
    const int64_t first = unit * kAdafactorRows, last = min_of(first + kAdafactorRows, rows);
    for (int64_t row = first; row < last; ++row) {
      const float* g_row = g + row * cols;
      const double squares = square_sum(0, cols, [=](int64_t i, auto lanes) {
        const Vec gradient = load(g_row + i, lanes) * grad_scale;
        const Vec square = fma(gradient, gradient, eps);
        store(sums + i, row == first ? square : load(sums + i, lanes) + square, lanes);
        return gradient;
      });
      const float mean = static_cast<float>(squares / static_cast<double>(cols) + step.eps);
      row_moment[row] = __builtin_fmaf(step.beta2, row_moment[row], step.one_minus_beta2 * mean);
    }
  }
}

void column_stats(const float* column_sums, int64_t rows, int64_t cols, int64_t col_begin, int64_t col_end,
                  const AdafactorStep& step, float* column_moment, float* column_factor) {
  const int64_t units = (rows + kAdafactorRows - 1) / kAdafactorRows;
  const Vec beta2 = broadcast(step.beta2);
  const Vec weight = broadcast(static_cast<float>(step.one_minus_beta2 / static_cast<double>(rows)));
  each_vec(col_begin, col_end, [=](int64_t i, auto lanes) {
    Vec sum = load(column_sums + i, lanes);
    for (int64_t unit = 1; unit < units; ++unit) sum = sum + load(column_sums + unit * cols + i, lanes);
    const Vec moment = fma(beta2, load(column_moment + i, lanes), weight * sum);
    store(column_moment + i, moment, lanes);
    store(column_factor + i, inverse_sqrt(moment), lanes);
  });
}

void row_factors(const float* row_moment, int64_t rows, float* row_factor) {
  double sum = 0.0;
  for (int64_t row = 0; row < rows; ++row) sum += row_moment[row];
  const Vec mean = broadcast(static_cast<float>(sum / static_cast<double>(rows)));
  each_vec(0, rows, [=](int64_t i, auto lanes) {
    store(row_factor + i, inverse_sqrt(load(row_moment + i, lanes) / mean), lanes);
  });
}

void update_squares(const float* g, const float* row_factor, const float* column_factor, int64_t rows,
                    int64_t cols, int64_t unit_begin, int64_t unit_end, float grad_scale, double* squares) {
  for (int64_t unit = unit_begin; unit < unit_end; ++unit) {
    const int64_t first = unit * kAdafactorRows, last = min_of(first + kAdafactorRows, rows);
    double sum = 0.0;
    for (int64_t row = first; row < last; ++row) {
      const float* g_row = g + row * cols;
      const Vec scale = broadcast(grad_scale), factor = broadcast(row_factor[row]);
      sum += square_sum(0, cols, [=](int64_t i, auto lanes) {
        return load(g_row + i, lanes) * scale * (factor * load(column_factor + i, lanes));
      });
    }
    squares[unit] = sum;
  }
}

struct ApplyConstants {
  explicit ApplyConstants(const AdafactorApply& step)
      : grad_scale(broadcast(step.grad_scale)),
        step_size(broadcast(step.step_size)),
        beta1(broadcast(step.beta1)),
        one_minus_beta1(broadcast(step.one_minus_beta1)),
        decay(broadcast(step.decay)) {}
  Vec grad_scale, step_size, beta1, one_minus_beta1, decay;
};

template <class Lanes>
inline void apply_update(float* p, float* m, uint16_t* p_bf16, int64_t i, Lanes lanes, Vec update,
                         const ApplyConstants& constants) {
  Vec move = update * constants.step_size;
  if (m) {
    move = fma(constants.beta1, load(m + i, lanes), constants.one_minus_beta1 * move);
    store(m + i, move, lanes);
  }
  const Vec p_new = load(p + i, lanes) * constants.decay - move;
  store(p + i, p_new, lanes);
  if (p_bf16) store_bf16(p_bf16 + i, p_new, lanes);
}

void apply(float* p, float* m, const float* g, const float* row_factor, const float* column_factor,
           uint16_t* p_bf16, int64_t cols, int64_t row_begin, int64_t row_end, const AdafactorApply& step) {
  const ApplyConstants constants(step);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const Vec factor = broadcast(row_factor[row]);
    const int64_t first = row * cols;
    each_vec(0, cols, [=](int64_t i, auto lanes) {
      const Vec update =
          load(g + first + i, lanes) * constants.grad_scale * (factor * load(column_factor + i, lanes));
      apply_update(p, m, p_bf16, first + i, lanes, update, constants);
    });
  }
}

void vector_moment(float* v, const float* g, int64_t n, int64_t block_begin, int64_t block_end,
                   const AdafactorStep& step, double* squares) {
  const Vec grad_scale = broadcast(step.grad_scale), eps = broadcast(step.eps);
  const Vec beta2 = broadcast(step.beta2), one_minus_beta2 = broadcast(step.one_minus_beta2);
  for (int64_t block = block_begin; block < block_end; ++block) {
    const int64_t begin = block * kNormBlock;
    squares[block] = square_sum(begin, min_of(begin + kNormBlock, n), [=](int64_t i, auto lanes) {
      const Vec gradient = load(g + i, lanes) * grad_scale;
      const Vec moment = fma(beta2, load(v + i, lanes), one_minus_beta2 * fma(gradient, gradient, eps));
      store(v + i, moment, lanes);
      return gradient * inverse_sqrt(moment);
    });
  }
}

void vector_apply(float* p, float* m, const float* v, const float* g, uint16_t* p_bf16, int64_t begin,
                  int64_t end, const AdafactorApply& step) {
  const ApplyConstants constants(step);
  each_vec(begin, end, [=](int64_t i, auto lanes) {
    const Vec update = load(g + i, lanes) * constants.grad_scale * inverse_sqrt(load(v + i, lanes));
    apply_update(p, m, p_bf16, i, lanes, update, constants);
  });
}

}  // namespace

extern const AdafactorLoops adafactor_loops = {row_stats, column_stats,  row_factors, update_squares,
                                               apply,     vector_moment, vector_apply};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
