// DirectConvLoops: convolution on filters as they lie in memory, for many channels over few positions.
//
// Nothing is packed or unfolded, and only taps that lie over the image are multiplied. Rows of images and
// results are given as offsets from a base, since neighbouring rows of one call are the same position of
// neighbouring images. A filter row is the channels of one tap of one output; outputs lie filter_stride
// apart.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

struct DirectConvLoops {
  // y[y_at[r] + o] = sum over taps t and channels c of x[x_at[t * rows + r] + c] * w[w_at[t] + o *
  // filter_stride + c]. Each lane sums its channels in order, tap after tap; the lanes are added last.
  void (*results)(float* y, const int64_t* y_at, const float* x, const int64_t* x_at, const float* w,
                  const int64_t* w_at, int64_t taps, int64_t rows, int64_t outputs, int64_t channels,
                  int64_t filter_stride);
  // dx[dx_at[r] + c] += sum over o of dy[dy_at[r] + o] * w[o * filter_stride + c], o in order.
  void (*grad_input)(float* dx, const int64_t* dx_at, const float* dy, const int64_t* dy_at, const float* w,
                     int64_t rows, int64_t outputs, int64_t channels, int64_t filter_stride);
  // dw[o * filter_stride + c] = sum over r of dy[dy_at[r] + o] * x[x_at[r] + c], r in order.
  void (*grad_filter)(float* dw, const float* dy, const int64_t* dy_at, const float* x, const int64_t* x_at,
                      int64_t rows, int64_t outputs, int64_t channels, int64_t filter_stride);
};

namespace avx2 {
extern const DirectConvLoops direct_conv_loops;
}
namespace avx512 {
extern const DirectConvLoops direct_conv_loops;
}

}  // namespace lockstep::cpu
