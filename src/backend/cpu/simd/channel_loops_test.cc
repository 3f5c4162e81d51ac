// Per-channel sweeps against double precision, in row order, and a whole batch norm composed of them.
#include "backend/cpu/simd/channel_loops.h"

#include "backend/cpu/simd/loops_testing.h"

namespace lockstep::cpu {
namespace {

class ChannelLoopsTest : public LoopsTest {};

TEST_P(ChannelLoopsTest, BatchNormForwardAndBackward) {
  const ChannelLoops& loops = GetParam().channel;
  for (int64_t channels : {1, 3, 16, 37}) {
    const int64_t rows = 23, n = rows * channels;
    const double count = static_cast<double>(rows);
    const auto x = random_floats(n, 1, 10.0f, 12.0f), dy = random_floats(n, 2),
               gamma = random_floats(channels, 3);
    std::vector<float> sum(channels), mean(channels), squares(channels), rstd(channels), scale(channels),
        shift(channels), sum_dy(channels), sum_dy_h(channels), slope(channels), offset(channels), y(n), dx(n);
    loops.moments(sum.data(), nullptr, x.data(), nullptr, rows, channels);
    for (int64_t c = 0; c < channels; ++c) mean[c] = sum[c] / static_cast<float>(rows);
    loops.moments(nullptr, squares.data(), x.data(), mean.data(), rows, channels);
    for (int64_t c = 0; c < channels; ++c) {
      rstd[c] = 1.0f / std::sqrt(squares[c] / static_cast<float>(rows) + 1e-5f);
      scale[c] = gamma[c] * rstd[c];
      shift[c] = -mean[c] * scale[c];
    }
    loops.affine(y.data(), x.data(), scale.data(), shift.data(), rows, channels);
    loops.gradient_sums(sum_dy.data(), sum_dy_h.data(), dy.data(), x.data(), mean.data(), rstd.data(), rows,
                        channels);
    for (int64_t c = 0; c < channels; ++c) {
      slope[c] = -scale[c] * rstd[c] * sum_dy_h[c] / static_cast<float>(rows);
      offset[c] = -scale[c] * sum_dy[c] / static_cast<float>(rows);
    }
    loops.gradient(dx.data(), dy.data(), x.data(), mean.data(), scale.data(), slope.data(), offset.data(),
                   rows, channels);

    for (int64_t c = 0; c < channels; ++c) {
      double m = 0, v = 0, g = 0, gh = 0;
      for (int64_t r = 0; r < rows; ++r) m += x[r * channels + c] / count;
      for (int64_t r = 0; r < rows; ++r) v += std::pow(x[r * channels + c] - m, 2) / count;
      const double s = 1.0 / std::sqrt(v + 1e-5);
      for (int64_t r = 0; r < rows; ++r) {
        g += dy[r * channels + c] / count;
        gh += dy[r * channels + c] * (x[r * channels + c] - m) * s / count;
      }
      for (int64_t r = 0; r < rows; ++r) {
        const double h = (x[r * channels + c] - m) * s;
        ASSERT_NEAR(y[r * channels + c], gamma[c] * h, 2e-5);
        ASSERT_NEAR(dx[r * channels + c], gamma[c] * s * (dy[r * channels + c] - g - h * gh), 3e-5);
      }
    }
  }
}

TEST_P(ChannelLoopsTest, SumsAddInRowOrderHoweverTheyAreCut) {
  const ChannelLoops& loops = GetParam().channel;
  const int64_t rows = 23, channels = 37;
  const auto x = random_floats(rows * channels, 1), dy = random_floats(rows * channels, 2);
  const auto mean = random_floats(channels, 3), rstd = random_floats(channels, 4);
  std::vector<float> whole[4], cut[4], plain(channels);
  for (int i = 0; i < 4; ++i) whole[i].resize(channels), cut[i].resize(channels);
  const auto run = [&](std::vector<float>* out, int64_t begin, int64_t end) {
    const float* rows_x = &x[begin * channels];
    loops.moments(out[0].data(), out[1].data(), rows_x, nullptr, end - begin, channels);
    loops.gradient_sums(out[2].data(), out[3].data(), &dy[begin * channels], rows_x, mean.data(), rstd.data(),
                        end - begin, channels);
  };
  run(whole, 0, rows);
  for (int64_t r = 0; r < rows; r += 7) run(cut, r, std::min(r + 7, rows));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(bits(cut[i]), bits(whole[i])) << i;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < channels; ++c) plain[c] += x[r * channels + c];
  EXPECT_EQ(bits(whole[0]), bits(plain));
}

LOCKSTEP_TEST_EVERY_ISA(ChannelLoopsTest);

}  // namespace
}  // namespace lockstep::cpu
