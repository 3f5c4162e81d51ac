// ChannelLoops: what batch norm and group norm need over channels-last tensors seen as [rows, channels].
//
// Rows are the pixels (of a whole batch for batch norm, of one sample for group norm). Partial sums are added
// to the caller's [channels] buffers row after row in index order: cut the rows in fixed blocks, give each
// block its own buffers, add those in order. The small per-channel algebra between the sweeps is the
// caller's.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

// The affine map before a relu: where it is not positive, no gradient passes.
struct ChannelGate {
  const float* scale;
  const float* shift;
};

struct ChannelLoops {
  // With d = x - pivot[c] (pivot may be null: 0): sum[c] += d, sum_squares[c] += d * d. A pivot near the mean
  // (the running mean, or the mean of a first sweep) keeps the variance from cancelling. Either sum may be
  // null.
  void (*moments)(float* sum, float* sum_squares, const float* x, const float* pivot, int64_t rows,
                  int64_t channels);
  // y = x * scale[c] + shift[c], rounded once. y may be x.
  void (*affine)(float* y, const float* x, const float* scale, const float* shift, int64_t rows,
                 int64_t channels);
  // sum_dy[c] += dy, sum_dy_h[c] += dy * h, where h = (x - mean[c]) * rstd[c].
  void (*gradient_sums)(float* sum_dy, float* sum_dy_h, const float* dy, const float* x, const float* mean,
                        const float* rstd, int64_t rows, int64_t channels);
  // dx = dy * scale[c] + (x - mean[c]) * slope[c] + shift[c]. dx may be dy or x.
  // Batch norm: scale = gamma rstd, slope = -scale rstd mean(dy h), shift = -scale mean(dy).
  void (*gradient)(float* dx, const float* dy, const float* x, const float* mean, const float* scale,
                   const float* slope, const float* shift, int64_t rows, int64_t channels);

  // The same three with a relu after the affine map: y = max(0, x * scale[c] + shift[c]), and dy counts as 0
  // where the gate is closed, which is found again from x with the forward's arithmetic.
  void (*affine_relu)(float* y, const float* x, const float* scale, const float* shift, int64_t rows,
                      int64_t channels);
  void (*gradient_sums_relu)(float* sum_dy, float* sum_dy_h, const float* dy, const float* x,
                             const float* mean, const float* rstd, const ChannelGate& gate, int64_t rows,
                             int64_t channels);
  void (*gradient_relu)(float* dx, const float* dy, const float* x, const float* mean, const float* slope,
                        const float* shift, const ChannelGate& gate, int64_t rows, int64_t channels);
};

namespace avx2 {
extern const ChannelLoops channel_loops;
}
namespace avx512 {
extern const ChannelLoops channel_loops;
}

}  // namespace lockstep::cpu
