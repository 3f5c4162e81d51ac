// Per-channel sweeps for batch norm and group norm. See channel_loops.h.
//
// Rows are taken a few at a time, so that per-channel operands are loaded once for all of them and sums stay
// in registers; sums are nevertheless added in row order.
#include "backend/cpu/simd/channel_loops.h"

#include "backend/cpu/simd/lanes.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

template <int n>
struct RowCount {
  static constexpr int value = n;
};

// Calls body(first_row, RowCount<k>) for groups that cover the rows in order.
template <class Body>
inline void for_row_groups(int64_t rows, Body body) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) body(r, RowCount<4>{});
  for (; r < rows; ++r) body(r, RowCount<1>{});
}

void moments(float* sum, float* sum_squares, const float* x, const float* pivot, int64_t rows,
             int64_t channels) {
  for_row_groups(rows, [=](int64_t first, auto group) {
    const float* block = x + first * channels;
    for_lanes(channels, [=](int64_t i, auto lanes) {
      const Vec center = pivot != nullptr ? load(pivot + i, lanes) : zero();
      Vec s = sum != nullptr ? load(sum + i, lanes) : zero();
      Vec q = sum_squares != nullptr ? load(sum_squares + i, lanes) : zero();
      for (int r = 0; r < group.value; ++r) {
        const Vec d = load(block + r * channels + i, lanes) - center;
        s += d;
        q = fma(d, d, q);
      }
      if (sum != nullptr) store(sum + i, s, lanes);
      if (sum_squares != nullptr) store(sum_squares + i, q, lanes);
    });
  });
}

template <bool kRelu>
void affine(float* y, const float* x, const float* scale, const float* shift, int64_t rows,
            int64_t channels) {
  for_row_groups(rows, [=](int64_t first, auto group) {
    const int64_t offset = first * channels;
    for_lanes(channels, [=](int64_t i, auto lanes) {
      const Vec a = load(scale + i, lanes);
      const Vec b = load(shift + i, lanes);
      for (int r = 0; r < group.value; ++r) {
        const int64_t at = offset + r * channels + i;
        const Vec v = fma(load(x + at, lanes), a, b);
        store(y + at, kRelu ? max(zero(), v) : v, lanes);
      }
    });
  });
}

// dy where the gate is open or undecided (NaN), else 0: the rule of relu's own gradient.
inline Vec gated(Vec dy, Vec x, Vec scale, Vec shift) {
  return select(fma(x, scale, shift) <= zero(), zero(), dy);
}

template <bool kRelu>
inline void sum_gradients(float* sum_dy, float* sum_dy_h, const float* dy, const float* x, const float* mean,
                          const float* rstd, ChannelGate gate, int64_t rows, int64_t channels) {
  for_row_groups(rows, [=](int64_t first, auto group) {
    const int64_t offset = first * channels;
    for_lanes(channels, [=](int64_t i, auto lanes) {
      const Vec center = load(mean + i, lanes);
      const Vec inverse = load(rstd + i, lanes);
      const Vec gate_scale = kRelu ? load(gate.scale + i, lanes) : zero();
      const Vec gate_shift = kRelu ? load(gate.shift + i, lanes) : zero();
      Vec s = load(sum_dy + i, lanes);
      Vec h_sum = load(sum_dy_h + i, lanes);
      for (int r = 0; r < group.value; ++r) {
        const int64_t at = offset + r * channels + i;
        const Vec v = load(x + at, lanes);
        Vec g = load(dy + at, lanes);
        if (kRelu) g = gated(g, v, gate_scale, gate_shift);
        s += g;
        h_sum = fma(g, (v - center) * inverse, h_sum);
      }
      store(sum_dy + i, s, lanes);
      store(sum_dy_h + i, h_sum, lanes);
    });
  });
}

void gradient_sums(float* sum_dy, float* sum_dy_h, const float* dy, const float* x, const float* mean,
                   const float* rstd, int64_t rows, int64_t channels) {
  sum_gradients<false>(sum_dy, sum_dy_h, dy, x, mean, rstd, {}, rows, channels);
}

void gradient_sums_relu(float* sum_dy, float* sum_dy_h, const float* dy, const float* x, const float* mean,
                        const float* rstd, const ChannelGate& gate, int64_t rows, int64_t channels) {
  sum_gradients<true>(sum_dy, sum_dy_h, dy, x, mean, rstd, gate, rows, channels);
}

template <bool kRelu>
inline void apply_gradient(float* dx, const float* dy, const float* x, const float* mean, const float* scale,
                           const float* slope, const float* shift, const float* gate_shift, int64_t rows,
                           int64_t channels) {
  for_row_groups(rows, [=](int64_t first, auto group) {
    const int64_t offset = first * channels;
    for_lanes(channels, [=](int64_t i, auto lanes) {
      const Vec center = load(mean + i, lanes);
      const Vec a = load(scale + i, lanes);
      const Vec b = load(slope + i, lanes);
      const Vec c = load(shift + i, lanes);
      const Vec gate = kRelu ? load(gate_shift + i, lanes) : zero();
      for (int r = 0; r < group.value; ++r) {
        const int64_t at = offset + r * channels + i;
        const Vec v = load(x + at, lanes);
        Vec g = load(dy + at, lanes);
        if (kRelu) g = gated(g, v, a, gate);
        store(dx + at, fma(g, a, fma(v - center, b, c)), lanes);
      }
    });
  });
}

void gradient(float* dx, const float* dy, const float* x, const float* mean, const float* scale,
              const float* slope, const float* shift, int64_t rows, int64_t channels) {
  apply_gradient<false>(dx, dy, x, mean, scale, slope, shift, nullptr, rows, channels);
}

// The gate's scale is the factor of dy too.
void gradient_relu(float* dx, const float* dy, const float* x, const float* mean, const float* slope,
                   const float* shift, const ChannelGate& gate, int64_t rows, int64_t channels) {
  apply_gradient<true>(dx, dy, x, mean, gate.scale, slope, shift, gate.shift, rows, channels);
}

}  // namespace

extern const ChannelLoops channel_loops = {moments,      affine<false>,      gradient_sums, gradient,
                                           affine<true>, gradient_sums_relu, gradient_relu};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
