// Register-blocked products on filters as they lie in memory. See direct_conv_loops.h.
//
// A block keeps its sums in registers (24 of 32 with AVX-512, 12 of 16 with AVX2), so that the loads of a
// step are fewer than its multiplications. Blocks at the edge are smaller and sum in the same order.
#include "backend/cpu/simd/direct_conv_loops.h"

#include "backend/cpu/simd/lanes.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

inline constexpr bool kWide = kLanes == 16;

template <int n>
struct Count {
  static constexpr int value = n;
};

// Calls body(first, Count<size>) over [0, total): blocks of `large`, then of `small`, then single ones.
template <int large, int small, class Body>
inline void for_blocks(int64_t total, Body body) {
  int64_t i = 0;
  for (; i + large <= total; i += large) body(i, Count<large>{});
  if constexpr (small > 1)
    for (; i + small <= total; i += small) body(i, Count<small>{});
  for (; i < total; ++i) body(i, Count<1>{});
}

template <int R, int Q>
inline void results_block(float* y, const int64_t* y_at, const float* x, const int64_t* x_at, const float* w,
                          const int64_t* w_at, int64_t taps, int64_t rows, int64_t channels,
                          int64_t filter_stride) {
  Vec sum[R][Q];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 32
    for (int q = 0; q < Q; ++q) sum[r][q] = zero();
  for (int64_t t = 0; t < taps; ++t) {
    const float* filter = w + w_at[t];
    const float* in[R];
#pragma GCC unroll 32
    for (int r = 0; r < R; ++r) in[r] = x + x_at[t * rows + r];
    for_lanes(channels, [&](int64_t c, auto lanes) {
      Vec v[R];
#pragma GCC unroll 32
      for (int r = 0; r < R; ++r) v[r] = load(in[r] + c, lanes);
#pragma GCC unroll 32
      for (int q = 0; q < Q; ++q) {
        const Vec f = load(filter + q * filter_stride + c, lanes);
#pragma GCC unroll 32
        for (int r = 0; r < R; ++r) sum[r][q] = fma(v[r], f, sum[r][q]);
      }
    });
  }
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 32
    for (int q = 0; q < Q; ++q) y[y_at[r] + q] = fold_halves(sum[r][q], Add{});
}

void results(float* y, const int64_t* y_at, const float* x, const int64_t* x_at, const float* w,
             const int64_t* w_at, int64_t taps, int64_t rows, int64_t outputs, int64_t channels,
             int64_t filter_stride) {
  for_blocks<kWide ? 6 : 4, 1>(outputs, [=](int64_t o, auto q) {
    for_blocks<kWide ? 4 : 3, 1>(rows, [=](int64_t r, auto n) {
      results_block<n.value, q.value>(y + o, y_at + r, x, x_at + r, w + o * filter_stride, w_at, taps, rows,
                                      channels, filter_stride);
    });
  });
}

// The filter rows of a block stay `ahead` outputs in front of the sums: they are far apart, and no hardware
// prefetcher follows them.
constexpr int64_t kAhead = 12;

template <int R, int V, class Lanes>
inline void grad_input_block(float* dx, const int64_t* dx_at, const float* dy, const int64_t* dy_at,
                             const float* w, int64_t outputs, int64_t filter_stride, Lanes lanes) {
  Vec sum[R][V];
  const float* in[R];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
    in[r] = dy + dy_at[r];
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) sum[r][v] = load(dx + dx_at[r] + v * kLanes, lanes);
  }
  for (int64_t o = 0; o < outputs; ++o) {
    const float* filter = w + o * filter_stride;
    Vec f[V];
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) {
      f[v] = load(filter + v * kLanes, lanes);
      __builtin_prefetch(filter + kAhead * filter_stride + v * kLanes);
    }
#pragma GCC unroll 32
    for (int r = 0; r < R; ++r) {
      const Vec d = broadcast(in[r][o]);
#pragma GCC unroll 32
      for (int v = 0; v < V; ++v) sum[r][v] = fma(d, f[v], sum[r][v]);
    }
  }
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) store(dx + dx_at[r] + v * kLanes, sum[r][v], lanes);
}

void grad_input(float* dx, const int64_t* dx_at, const float* dy, const int64_t* dy_at, const float* w,
                int64_t rows, int64_t outputs, int64_t channels, int64_t filter_stride) {
  const auto columns = [=](int64_t c, auto v, auto lanes) {
    for_blocks<kWide ? 12 : 6, 4>(rows, [=](int64_t r, auto n) {
      grad_input_block<n.value, v.value>(dx + c, dx_at + r, dy, dy_at + r, w + c, outputs, filter_stride,
                                         lanes);
    });
  };
  int64_t c = 0;
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes) columns(c, Count<2>{}, AllLanes{});
  for (; c + kLanes <= channels; c += kLanes) columns(c, Count<1>{}, AllLanes{});
  if (c < channels) columns(c, Count<1>{}, FirstLanes{channels - c});
}

template <int Q, int V, class Lanes>
inline void grad_filter_block(float* dw, const float* dy, const int64_t* dy_at, const float* x,
                              const int64_t* x_at, int64_t rows, int64_t filter_stride, Lanes lanes) {
  Vec sum[Q][V];
#pragma GCC unroll 32
  for (int q = 0; q < Q; ++q)
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) sum[q][v] = zero();
  for (int64_t r = 0; r < rows; ++r) {
    const float* d = dy + dy_at[r];
    const float* in = x + x_at[r];
    Vec image[V];
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) image[v] = load(in + v * kLanes, lanes);
#pragma GCC unroll 32
    for (int q = 0; q < Q; ++q) {
      const Vec b = broadcast(d[q]);
#pragma GCC unroll 32
      for (int v = 0; v < V; ++v) sum[q][v] = fma(b, image[v], sum[q][v]);
    }
  }
#pragma GCC unroll 32
  for (int q = 0; q < Q; ++q)
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) store(dw + q * filter_stride + v * kLanes, sum[q][v], lanes);
}

void grad_filter(float* dw, const float* dy, const int64_t* dy_at, const float* x, const int64_t* x_at,
                 int64_t rows, int64_t outputs, int64_t channels, int64_t filter_stride) {
  constexpr int kVectors = kWide ? 4 : 2;
  const auto columns = [=](int64_t c, auto v, auto lanes) {
    for_blocks<6, 1>(outputs, [=](int64_t o, auto q) {
      grad_filter_block<q.value, v.value>(dw + o * filter_stride + c, dy + o, dy_at, x + c, x_at, rows,
                                          filter_stride, lanes);
    });
  };
  int64_t c = 0;
  for (; c + kVectors * kLanes <= channels; c += kVectors * kLanes) columns(c, Count<kVectors>{}, AllLanes{});
  for (; c + kLanes <= channels; c += kLanes) columns(c, Count<1>{}, AllLanes{});
  if (c < channels) columns(c, Count<1>{}, FirstLanes{channels - c});
}

}  // namespace

extern const DirectConvLoops direct_conv_loops = {results, grad_input, grad_filter};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
