// Layer norm and RMS norm against double precision, with and without residual, and the order of parameter
// gradients.
#include "backend/cpu/simd/norm_loops.h"

#include "backend/cpu/simd/loops_testing.h"

namespace lockstep::cpu {
namespace {

// One problem, its outputs, and the exact row statistics.
struct NormCase {
  NormCase(int64_t rows, int64_t cols, bool centered, bool residual)
      : rows(rows), cols(cols), centered(centered), residual(residual) {
    const int64_t n = rows * cols;
    x = random_floats(n, 1, 2.0f, 5.0f);
    r = random_floats(n, 2);
    gamma = random_floats(cols, 3);
    beta = random_floats(cols, 4);
    dy = random_floats(n, 5);
    dsum = random_floats(n, 6);
    sum.resize(n), y.resize(n), dx.resize(n);
    mean.resize(rows), rstd.resize(rows), dgamma.resize(cols), dbeta.resize(cols);
  }

  NormForward forward() {
    return {x.data(),
            residual ? r.data() : nullptr,
            gamma.data(),
            beta.data(),
            residual ? sum.data() : nullptr,
            y.data(),
            mean.data(),
            rstd.data(),
            kEps,
            cols};
  }
  NormBackward backward() {
    return {dy.data(),    residual ? sum.data() : x.data(),
            gamma.data(), mean.data(),
            rstd.data(),  dsum.data(),
            dx.data(),    dgamma.data(),
            dbeta.data(), cols};
  }

  double input(int64_t row, int64_t c) const {
    return residual ? x[row * cols + c] + r[row * cols + c] : x[row * cols + c];
  }
  void statistics(int64_t row, double& m, double& s) const {
    m = s = 0;
    for (int64_t c = 0; c < cols && centered; ++c) m += input(row, c) / static_cast<double>(cols);
    for (int64_t c = 0; c < cols; ++c) s += (input(row, c) - m) * (input(row, c) - m);
    s = 1.0 / std::sqrt(s / static_cast<double>(cols) + kEps);
  }

  static constexpr float kEps = 1e-5f;
  int64_t rows, cols;
  bool centered, residual;
  std::vector<float> x, r, gamma, beta, dy, dsum, sum, y, dx, mean, rstd, dgamma, dbeta;
};

class NormLoopsTest : public LoopsTest {
 protected:
  void run_forward(NormCase& c, int64_t begin, int64_t end) const {
    (c.centered ? GetParam().norm.layer_norm : GetParam().norm.rms_norm)(c.forward(), begin, end);
  }
  void run_backward(NormCase& c, int64_t begin, int64_t end) const {
    (c.centered ? GetParam().norm.layer_norm_backward : GetParam().norm.rms_norm_backward)(c.backward(),
                                                                                           begin, end);
  }
};

TEST_P(NormLoopsTest, ForwardAndBackwardForEveryTail) {
  for (bool centered : {true, false})
    for (bool residual : {false, true})
      for (int64_t cols = 2; cols <= 140; cols += cols < 40 ? 1 : 13) {
        NormCase c(3, cols, centered, residual);
        run_forward(c, 0, 3);
        run_backward(c, 0, 3);
        std::vector<double> y, dx, dgamma(cols), dbeta(cols);
        for (int64_t r = 0; r < 3; ++r) {
          double m, s, mean_g = 0, mean_gh = 0;
          c.statistics(r, m, s);
          const double count = static_cast<double>(cols);
          for (int64_t i = 0; i < cols; ++i) {
            const double h = (c.input(r, i) - m) * s, dy = c.dy[r * cols + i], g = dy * c.gamma[i];
            y.push_back(h * c.gamma[i] + (centered ? c.beta[i] : 0));
            dgamma[i] += dy * h;
            if (centered) dbeta[i] += dy, mean_g += g / count;
            mean_gh += g * h / count;
          }
          for (int64_t i = 0; i < cols; ++i) {
            const double h = (c.input(r, i) - m) * s, g = c.dy[r * cols + i] * c.gamma[i];
            dx.push_back(s * (g - mean_g - h * mean_gh) + c.dsum[r * cols + i]);
          }
        }
        // Two columns can lie so close that rstd is large and the input's own rounding shows.
        const double tolerance = cols < 6 ? 3e-4 : 1e-5;
        expect_close(c.y, y, tolerance);
        expect_close(c.dx, dx, tolerance * 10);
        expect_close(c.dgamma, dgamma, tolerance);
        expect_close(c.dbeta, dbeta, tolerance);
      }
}

TEST_P(NormLoopsTest, RowRangesGiveTheSameBits) {
  for (bool centered : {true, false}) {
    NormCase whole(11, 77, centered, true), cut(11, 77, centered, true);
    run_forward(whole, 0, 11);
    run_backward(whole, 0, 11);
    for (int64_t r = 0; r < 11; r += 3) run_forward(cut, r, std::min<int64_t>(r + 3, 11));
    for (int64_t r = 0; r < 11; r += 2) run_backward(cut, r, std::min<int64_t>(r + 2, 11));
    EXPECT_EQ(bits(cut.sum), bits(whole.sum));
    EXPECT_EQ(bits(cut.y), bits(whole.y));
    EXPECT_EQ(bits(cut.dx), bits(whole.dx));
    EXPECT_EQ(bits(cut.dgamma), bits(whole.dgamma));
    EXPECT_EQ(bits(cut.dbeta), bits(whole.dbeta));
  }
}

TEST_P(NormLoopsTest, InPlace) {
  NormCase apart(4, 50, true, false), in_place(4, 50, true, false);
  run_forward(apart, 0, 4);
  run_backward(apart, 0, 4);
  NormForward forward = in_place.forward();
  const auto x = in_place.x;
  forward.y = in_place.x.data();
  GetParam().norm.layer_norm(forward, 0, 4);
  EXPECT_EQ(bits(in_place.x), bits(apart.y));
  NormBackward backward = in_place.backward();
  backward.x = x.data();
  backward.dx = in_place.dy.data();
  GetParam().norm.layer_norm_backward(backward, 0, 4);
  EXPECT_EQ(bits(in_place.dy), bits(apart.dx));
}

TEST_P(NormLoopsTest, BetaAndItsGradientAreOptional) {
  NormCase with(2, 40, true, false), without(2, 40, true, false);
  with.beta.assign(40, 0.0f);
  NormForward forward = without.forward();
  forward.beta = nullptr;
  run_forward(with, 0, 2);
  GetParam().norm.layer_norm(forward, 0, 2);
  EXPECT_EQ(bits(without.y), bits(with.y));
  NormBackward backward = without.backward();
  backward.dbeta = nullptr;
  run_backward(with, 0, 2);
  GetParam().norm.layer_norm_backward(backward, 0, 2);
  EXPECT_EQ(bits(without.dx), bits(with.dx));
}

TEST_P(NormLoopsTest, LargeMeanDoesNotCancel) {
  NormCase c(1, 512, true, false);
  for (float& v : c.x) v += 4096.0f;
  run_forward(c, 0, 1);
  double m, s;
  c.statistics(0, m, s);
  EXPECT_NEAR(c.rstd[0] / s, 1.0, 1e-5);
}

LOCKSTEP_TEST_EVERY_ISA(NormLoopsTest);

}  // namespace
}  // namespace lockstep::cpu
