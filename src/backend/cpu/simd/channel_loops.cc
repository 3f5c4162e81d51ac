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

void affine(float* y, const float* x, const float* scale, const float* shift, int64_t rows,
            int64_t channels) {
  for_row_groups(rows, [=](int64_t first, auto group) {
    const int64_t offset = first * channels;
    for_lanes(channels, [=](int64_t i, auto lanes) {
      const Vec a = load(scale + i, lanes);
      const Vec b = load(shift + i, lanes);
      for (int r = 0; r < group.value; ++r) {
        const int64_t at = offset + r * channels + i;
        store(y + at, fma(load(x + at, lanes), a, b), lanes);
      }
    });
  });
}

void gradient_sums(float* sum_dy, float* sum_dy_h, const float* dy, const float* x, const float* mean,
                   const float* rstd, int64_t rows, int64_t channels) {
  for_row_groups(rows, [=](int64_t first, auto group) {
    const int64_t offset = first * channels;
    for_lanes(channels, [=](int64_t i, auto lanes) {
      const Vec center = load(mean + i, lanes);
      const Vec inverse = load(rstd + i, lanes);
      Vec s = load(sum_dy + i, lanes);
      Vec h_sum = load(sum_dy_h + i, lanes);
      for (int r = 0; r < group.value; ++r) {
        const int64_t at = offset + r * channels + i;
        const Vec g = load(dy + at, lanes);
        s += g;
        h_sum = fma(g, (load(x + at, lanes) - center) * inverse, h_sum);
      }
      store(sum_dy + i, s, lanes);
      store(sum_dy_h + i, h_sum, lanes);
    });
  });
}

void gradient(float* dx, const float* dy, const float* x, const float* mean, const float* scale,
              const float* slope, const float* shift, int64_t rows, int64_t channels) {
  for_row_groups(rows, [=](int64_t first, auto group) {
    const int64_t offset = first * channels;
    for_lanes(channels, [=](int64_t i, auto lanes) {
      const Vec center = load(mean + i, lanes);
      const Vec a = load(scale + i, lanes);
      const Vec b = load(slope + i, lanes);
      const Vec c = load(shift + i, lanes);
      for (int r = 0; r < group.value; ++r) {
        const int64_t at = offset + r * channels + i;
        const Vec centered = load(x + at, lanes) - center;
        store(dx + at, fma(load(dy + at, lanes), a, fma(centered, b, c)), lanes);
      }
    });
  });
}

}  // namespace

extern const ChannelLoops channel_loops = {moments, affine, gradient_sums, gradient};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
