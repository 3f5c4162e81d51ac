// Per-channel sums over the pixels of channels-last tensors, for batch norm and group norm.
//
// A tensor is seen as [samples, rows, channels]. The rows of a sample are cut into blocks by shape alone;
// each block gives partial sums in f32, and the blocks are combined in index order in double.
#pragma once
#include "backend/cpu/kernel_def.h"
#include "backend/cpu/simd/channel_loops.h"

namespace lockstep::cpu {

class ChannelSums {
 public:
  ChannelSums(const CpuContext& context, int64_t samples, int64_t rows, int64_t channels);

  int64_t samples() const { return samples_; }
  int64_t rows() const { return rows_; }
  int64_t channels() const { return channels_; }
  // Floats of scratch for the partial sums.
  int64_t partial_floats() const { return samples_ * blocks_ * 2 * channels_; }

  // mean[s, c], and squares[s, c] = the sum over rows of (x - mean)^2. The variance is taken around each
  // block's own mean while the block is in cache, so that it does not cancel, and x comes from memory once.
  void moments(const float* x, float* partial, double* mean, double* squares) const;
  // sum_dy[s, c] and sum_dy_h[s, c], where h = (x - mean[s, c]) * rstd[s, c]. With a gate [s, c], dy is 0
  // where a relu after the norm was closed.
  void gradient_sums(const float* dy, const float* x, const float* mean, const float* rstd,
                     const ChannelGate* gate, float* partial, double* sum_dy, double* sum_dy_h) const;
  // Calls body(sample, first element, rows) for every block, on any thread.
  template <typename Body>
  void for_blocks(const Body& body) const {
    context_.pool.run(samples_ * blocks_, [&](int64_t task) {
      const int64_t sample = task / blocks_;
      const int64_t begin = task % blocks_ * block_rows_;
      body(sample, (sample * rows_ + begin) * channels_, rows_in(task % blocks_));
    });
  }

 private:
  int64_t rows_in(int64_t block) const {
    const int64_t left = rows_ - block * block_rows_;
    return left < block_rows_ ? left : block_rows_;
  }
  // Of the block that begins at an element.
  float* partial_of(int64_t sample, int64_t first, float* partial) const;
  template <typename Body>
  void for_channels(const Body& body) const;

  CpuContext context_;
  int64_t samples_;
  int64_t rows_;
  int64_t channels_;
  int64_t block_rows_;
  int64_t blocks_;
};

}  // namespace lockstep::cpu
