// Softmax and cross-entropy rows against double precision; masked, infinite and NaN logits; ignored and bad
// labels.
#include "backend/cpu/simd/softmax_loops.h"

#include "backend/cpu/simd/loops_testing.h"

namespace lockstep::cpu {
namespace {

class SoftmaxLoopsTest : public LoopsTest {};

double log_sum_exp(const float* x, int64_t n) {
  double highest = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; ++i) highest = std::max(highest, static_cast<double>(x[i]));
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - highest);
  return highest + std::log(sum);
}

TEST_P(SoftmaxLoopsTest, RowsForEveryTail) {
  const SoftmaxLoops& loops = GetParam().softmax;
  for (int64_t n = 1; n <= 140; n += n < 40 ? 1 : 9) {
    const auto x = random_floats(2 * n, 1, -30.0f, 30.0f), dy = random_floats(2 * n, 2);
    std::vector<float> y(2 * n), log_y(2 * n), dx(2 * n), log_dx(2 * n);
    loops.softmax(y.data(), x.data(), 2, n);
    loops.log_softmax(log_y.data(), x.data(), 2, n);
    loops.softmax_backward(dx.data(), y.data(), dy.data(), 2, n);
    loops.log_softmax_backward(log_dx.data(), log_y.data(), dy.data(), 2, n);
    std::vector<double> p, log_p, want_dx, want_log_dx;
    for (int64_t r = 0; r < 2; ++r) {
      const double lse = log_sum_exp(&x[r * n], n);
      double dot = 0, sum = 0;
      for (int64_t i = r * n; i < (r + 1) * n; ++i) {
        log_p.push_back(x[i] - lse);
        p.push_back(std::exp(x[i] - lse));
        dot += p.back() * dy[i];
        sum += dy[i];
      }
      for (int64_t i = r * n; i < (r + 1) * n; ++i) {
        want_dx.push_back(p[i] * (dy[i] - dot));
        want_log_dx.push_back(dy[i] - p[i] * sum);
      }
    }
    expect_close(y, p, 1e-6);
    expect_close(log_y, log_p, 1e-6);
    expect_close(dx, want_dx, 4e-6);
    expect_close(log_dx, want_log_dx, 4e-5);
    auto in_place = x;
    loops.softmax(in_place.data(), in_place.data(), 2, n);
    EXPECT_EQ(bits(in_place), bits(y));
  }
}

TEST_P(SoftmaxLoopsTest, MaskedLogitsGetNoProbability) {
  std::vector<float> x = {1.0f, -INFINITY, 1.0f, -INFINITY}, y(4);
  GetParam().softmax.softmax(y.data(), x.data(), 1, 4);
  EXPECT_EQ(y, (std::vector<float>{0.5f, 0.0f, 0.5f, 0.0f}));
  x[3] = NAN;
  GetParam().softmax.softmax(y.data(), x.data(), 1, 4);
  for (float v : y) EXPECT_TRUE(std::isnan(v));
}

// What three parts of a row know of it is what the row's cross-entropy is made of; ignored rows and labels
// that are no class are seen by every part, masked columns add nothing.
TEST_P(SoftmaxLoopsTest, PartsOfRowsMakeUpTheirCrossEntropy) {
  const SoftmaxLoops& loops = GetParam().softmax;
  constexpr int64_t kRows = 5, kPart = 37;
  auto x = random_floats(kRows * 3 * kPart, 9, -20.0f, 20.0f);
  std::fill_n(x.begin(), kPart, -INFINITY);
  const std::vector<int32_t> labels = {40, 0, -100, 110, 111};
  std::vector<double> lse(kRows, 0), target(kRows, 0), highest(kRows, -INFINITY);
  std::vector<std::vector<float>> parts;
  for (int64_t part = 0; part < 3; ++part) {
    std::vector<float> columns;
    for (int64_t r = 0; r < kRows; ++r)
      columns.insert(columns.end(), &x[(3 * r + part) * kPart], &x[(3 * r + part + 1) * kPart]);
    std::vector<float>& found = parts.emplace_back(4 * kRows);
    loops.cross_entropy_part(
        {found.data(), found.data() + kRows, found.data() + 2 * kRows, found.data() + 3 * kRows},
        columns.data(), labels.data(), {kPart, -100, 0.1f, part * kPart, 3 * kPart}, kRows);
    EXPECT_TRUE(std::isnan(found[2 * kRows + 4]));
    EXPECT_EQ(found[2], 0.0f);
    EXPECT_EQ(found[kRows + 2], 1.0f);
    for (int64_t r = 0; r < kRows; ++r) highest[r] = std::max(highest[r], static_cast<double>(found[r]));
  }
  EXPECT_EQ(parts[0][0], -INFINITY);
  EXPECT_EQ(parts[0][kRows], 0.0f);
  for (const int64_t r : {0, 1, 3}) {
    for (const std::vector<float>& found : parts) {
      lse[r] += found[kRows + r] * std::exp(found[r] - highest[r]);
      target[r] += found[2 * kRows + r];
    }
    EXPECT_NEAR(highest[r] + std::log(lse[r]), log_sum_exp(&x[3 * r * kPart], 3 * kPart), 4e-6);
    EXPECT_EQ(target[r], x[3 * r * kPart + labels[r]]);
  }
}

TEST_P(SoftmaxLoopsTest, CrossEntropyAndItsGradient) {
  const SoftmaxLoops& loops = GetParam().softmax;
  for (int64_t n : {1, 2, 10, 37, 2048, 5003})
    for (float smoothing : {0.0f, 0.1f}) {
      const auto x = random_floats(3 * n, 7, -20.0f, 20.0f);
      const std::vector<int32_t> labels = {static_cast<int32_t>(n - 1), -100, 0};
      const CrossEntropyRows shape{n, -100, smoothing};
      std::vector<float> loss(3), lse(3);
      loops.cross_entropy(loss.data(), lse.data(), x.data(), labels.data(), shape, 3);
      auto dx = x;
      loops.cross_entropy_backward(dx.data(), dx.data(), lse.data(), labels.data(), shape, 0.5f, 3);
      for (int64_t r = 0; r < 3; ++r) {
        const float* row = &x[r * n];
        const double want_lse = log_sum_exp(row, n);
        double mean = 0;
        for (int64_t i = 0; i < n; ++i) mean += row[i] / static_cast<double>(n);
        const bool ignored = labels[r] == -100;
        const double picked = ignored ? 0 : (1.0 - smoothing) * row[labels[r]] + smoothing * mean;
        ASSERT_NEAR(loss[r], ignored ? 0.0 : want_lse - picked, 1e-5);
        if (!ignored) {
          ASSERT_NEAR(lse[r], want_lse, 4e-6);
        }
        for (int64_t i = 0; i < n; ++i) {
          const double target = (1.0 - smoothing) * (i == labels[r]) + smoothing / static_cast<double>(n);
          const double want = ignored ? 0.0 : 0.5 * (std::exp(row[i] - want_lse) - target);
          ASSERT_NEAR(dx[r * n + i], want, 4e-6);
        }
      }
    }
}

TEST_P(SoftmaxLoopsTest, CrossEntropySeesRisingMaximaAndMasks) {
  // Blocks of all -infinity first, then maxima that rise from block to block.
  const int64_t n = 9000;
  std::vector<float> x(n, -INFINITY);
  for (int64_t i = 5000; i < n; ++i) x[i] = static_cast<float>(i) * 0.01f - 100.0f;
  const CrossEntropyRows shape{n};
  const int32_t label = 8000;
  float loss, lse;
  GetParam().softmax.cross_entropy(&loss, &lse, x.data(), &label, shape, 1);
  EXPECT_NEAR(lse, log_sum_exp(x.data(), n), 1e-5);
  EXPECT_NEAR(loss, log_sum_exp(x.data(), n) - x[label], 1e-5);
  x[10] = NAN;
  GetParam().softmax.cross_entropy(&loss, &lse, x.data(), &label, shape, 1);
  EXPECT_TRUE(std::isnan(loss));
}

TEST_P(SoftmaxLoopsTest, BadLabelGivesNanAndTouchesNothingElse) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> labels = {3, 1};
  const CrossEntropyRows shape{3};
  std::vector<float> loss(2), lse(2), dx(6);
  GetParam().softmax.cross_entropy(loss.data(), lse.data(), x.data(), labels.data(), shape, 2);
  GetParam().softmax.cross_entropy_backward(dx.data(), x.data(), lse.data(), labels.data(), shape, 1.0f, 2);
  EXPECT_TRUE(std::isnan(loss[0]));
  EXPECT_TRUE(std::isnan(dx[0]));
  EXPECT_FALSE(std::isnan(loss[1]));
  EXPECT_FALSE(std::isnan(dx[3]));
}

TEST_P(SoftmaxLoopsTest, BinaryCrossEntropy) {
  const auto x = random_floats(101, 1, -60.0f, 60.0f), t = random_floats(101, 2, 0.0f, 1.0f);
  std::vector<float> loss(101), dx(101);
  std::vector<double> want, want_dx;
  for (size_t i = 0; i < 101; ++i) {
    want.push_back(std::max<double>(x[i], 0) - static_cast<double>(x[i]) * t[i] +
                   std::log1p(std::exp(-std::abs(static_cast<double>(x[i])))));
    want_dx.push_back(0.25 * (1.0 / (1.0 + std::exp(-static_cast<double>(x[i]))) - t[i]));
  }
  GetParam().softmax.binary_cross_entropy(loss.data(), x.data(), t.data(), 101);
  GetParam().softmax.binary_cross_entropy_backward(dx.data(), x.data(), t.data(), 0.25f, 101);
  expect_close(loss, want, 3e-6);
  expect_close(dx, want_dx, 1e-7);
}

LOCKSTEP_TEST_EVERY_ISA(SoftmaxLoopsTest);

}  // namespace
}  // namespace lockstep::cpu
