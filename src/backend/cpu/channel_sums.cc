#include "backend/cpu/channel_sums.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

// A block is read twice and so should stay in the second cache; it has enough rows for its partial sums to be
// a small part of what it reads.
constexpr int64_t kBlockElements = 32768;
constexpr int64_t kFewestRows = 64;
constexpr int64_t kChannelsPerTask = 64;

}  // namespace

ChannelSums::ChannelSums(const CpuContext& context, int64_t samples, int64_t rows, int64_t channels)
    : context_(context),
      samples_(samples),
      rows_(rows),
      channels_(channels),
      block_rows_(std::max(kFewestRows, kBlockElements / std::max<int64_t>(channels, 1))),
      blocks_(std::max<int64_t>(1, ceil_div(rows, block_rows_))) {}

float* ChannelSums::partial_of(int64_t sample, int64_t first, float* partial) const {
  const int64_t block = (first / channels_ - sample * rows_) / block_rows_;
  return partial + (sample * blocks_ + block) * 2 * channels_;
}

// Calls body(sample, first channel, channels) for small ranges of channels, on any thread.
template <typename Body>
void ChannelSums::for_channels(const Body& body) const {
  const int64_t ranges = ceil_div(channels_, kChannelsPerTask);
  context_.pool.run(samples_ * ranges, [&](int64_t task) {
    const int64_t first = task % ranges * kChannelsPerTask;
    body(task / ranges, first, std::min(kChannelsPerTask, channels_ - first));
  });
}

void ChannelSums::moments(const float* x, float* partial, double* mean, double* squares) const {
  const auto channel_bytes = static_cast<size_t>(channels_) * sizeof(float);
  for_blocks([&](int64_t sample, int64_t first, int64_t rows) {
    float* block_mean = partial_of(sample, first, partial);
    float* block_squares = block_mean + channels_;
    std::memset(block_mean, 0, 2 * channel_bytes);
    context_.simd.channel.moments(block_mean, nullptr, x + first, nullptr, rows, channels_);
    for (int64_t c = 0; c < channels_; ++c) block_mean[c] /= static_cast<float>(rows);
    context_.simd.channel.moments(nullptr, block_squares, x + first, block_mean, rows, channels_);
  });
  // Chan, Golub, LeVeque: the sums of squares of two sets, around the mean of both.
  for_channels([&](int64_t sample, int64_t begin, int64_t count) {
    double* m = mean + sample * channels_ + begin;
    double* q = squares + sample * channels_ + begin;
    std::fill_n(m, count, 0.0);
    std::fill_n(q, count, 0.0);
    for (int64_t block = 0; block < blocks_; ++block) {
      const float* block_mean = partial + (sample * blocks_ + block) * 2 * channels_ + begin;
      const float* block_squares = block_mean + channels_;
      const auto before = static_cast<double>(block * block_rows_);
      const auto added = static_cast<double>(rows_in(block));
      const double share = added / (before + added);
      for (int64_t c = 0; c < count; ++c) {
        const double delta = static_cast<double>(block_mean[c]) - m[c];
        m[c] += delta * share;
        q[c] += static_cast<double>(block_squares[c]) + delta * delta * before * share;
      }
    }
  });
}

void ChannelSums::gradient_sums(const float* dy, const float* x, const float* mean, const float* rstd,
                                const ChannelGate* gate, float* partial, double* sum_dy,
                                double* sum_dy_h) const {
  const ChannelLoops& loops = context_.simd.channel;
  for_blocks([&](int64_t sample, int64_t first, int64_t rows) {
    float* sums = partial_of(sample, first, partial);
    std::memset(sums, 0, 2 * static_cast<size_t>(channels_) * sizeof(float));
    const int64_t at = sample * channels_;
    if (gate == nullptr)
      loops.gradient_sums(sums, sums + channels_, dy + first, x + first, mean + at, rstd + at, rows,
                          channels_);
    else
      loops.gradient_sums_relu(sums, sums + channels_, dy + first, x + first, mean + at, rstd + at,
                               {gate->scale + at, gate->shift + at}, rows, channels_);
  });
  for_channels([&](int64_t sample, int64_t begin, int64_t count) {
    double* total = sum_dy + sample * channels_ + begin;
    double* total_h = sum_dy_h + sample * channels_ + begin;
    std::fill_n(total, count, 0.0);
    std::fill_n(total_h, count, 0.0);
    for (int64_t block = 0; block < blocks_; ++block) {
      const float* sums = partial + (sample * blocks_ + block) * 2 * channels_ + begin;
      for (int64_t c = 0; c < count; ++c) {
        total[c] += static_cast<double>(sums[c]);
        total_h[c] += static_cast<double>(sums[channels_ + c]);
      }
    }
  });
}

}  // namespace lockstep::cpu
