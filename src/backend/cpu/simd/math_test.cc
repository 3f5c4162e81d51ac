// Accuracy of the elementary functions against double precision, and their values at the edges.
#include "backend/cpu/simd/loops_testing.h"

namespace lockstep::cpu {
namespace {

constexpr float kInf = INFINITY;
constexpr float kNan = NAN;

class MathTest : public LoopsTest {
 protected:
  float at(Scalar f, float a, float b = 0.0f) const {
    float out;
    GetParam().pointwise.tile[static_cast<int>(f)](&out, &a, &b, &b, 1);
    return out;
  }

  // The largest |error| / (absolute + relative * |exact|) over a fine sweep; must stay below 1.
  template <class Reference>
  void expect_accurate(Scalar f, float low, float high, double relative, double absolute,
                       Reference reference) const {
    constexpr int kPoints = 200000;
    std::vector<float> x(kPoints + 1), y(kPoints + 1);
    for (int i = 0; i <= kPoints; ++i) x[i] = low + (high - low) * (static_cast<float>(i) / kPoints);
    GetParam().pointwise.tile[static_cast<int>(f)](y.data(), x.data(), nullptr, nullptr, kPoints + 1);
    double worst = 0.0;
    float worst_x = 0.0f;
    for (int i = 0; i <= kPoints; ++i) {
      const double exact = reference(static_cast<double>(x[i]));
      const double error = std::abs(y[i] - exact) / (absolute + relative * std::abs(exact));
      if (!(error <= worst)) worst = error, worst_x = x[i];
    }
    EXPECT_LE(worst, 1.0) << "at x = " << worst_x;
  }
};

constexpr double kUlp = 1.0 / (1 << 23);

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double gelu_argument(double x) { return 2.0 * std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x); }
double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double normal_pdf(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI); }

TEST_P(MathTest, ExpAndLogAreWithinOneAndAHalfUlp) {
  expect_accurate(Scalar::exp, -87.0f, 88.7f, 1.5 * kUlp, 0.0, [](double x) { return std::exp(x); });
  expect_accurate(Scalar::exp, -1.0f, 1.0f, 1.5 * kUlp, 0.0, [](double x) { return std::exp(x); });
  expect_accurate(Scalar::log, 0.5f, 2.0f, 1.5 * kUlp, 0.0, [](double x) { return std::log(x); });
  expect_accurate(Scalar::log, 1e-40f, 1e-37f, 1.5 * kUlp, 0.0, [](double x) { return std::log(x); });
  expect_accurate(Scalar::log, 1.0f, 3e38f, 1.5 * kUlp, 0.0, [](double x) { return std::log(x); });
}

TEST_P(MathTest, TanhErfSigmoidSoftplus) {
  expect_accurate(Scalar::tanh, -10.0f, 10.0f, 3e-7, 0.0, [](double x) { return std::tanh(x); });
  expect_accurate(Scalar::tanh, -1e-3f, 1e-3f, 3e-7, 0.0, [](double x) { return std::tanh(x); });
  expect_accurate(Scalar::erf, -6.0f, 6.0f, 4e-7, 0.0, [](double x) { return std::erf(x); });
  expect_accurate(Scalar::sigmoid, -80.0f, 30.0f, 3e-7, 0.0, logistic);
  expect_accurate(Scalar::softplus, -80.0f, 80.0f, 3e-7, 0.0,
                  [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); });
}

TEST_P(MathTest, Activations) {
  expect_accurate(Scalar::gelu_erf, -15.0f, 15.0f, 3e-7, 2e-7, [](double x) { return x * normal_cdf(x); });
  expect_accurate(Scalar::gelu_erf_grad, -15.0f, 15.0f, 3e-7, 2e-7,
                  [](double x) { return normal_cdf(x) + x * normal_pdf(x); });
  expect_accurate(Scalar::gelu_tanh, -15.0f, 15.0f, 3e-7, 2e-7,
                  [](double x) { return x * logistic(gelu_argument(x)); });
  expect_accurate(Scalar::gelu_tanh_grad, -15.0f, 15.0f, 3e-7, 2e-7, [](double x) {
    const double s = logistic(gelu_argument(x));
    return s + x * s * (1 - s) * 2.0 * std::sqrt(2.0 / M_PI) * (1.0 + 3 * 0.044715 * x * x);
  });
  expect_accurate(Scalar::silu, -50.0f, 50.0f, 3e-7, 2e-7, [](double x) { return x * logistic(x); });
  expect_accurate(Scalar::silu_grad, -50.0f, 50.0f, 3e-7, 2e-7,
                  [](double x) { return logistic(x) * (1.0 + x * (1.0 - logistic(x))); });
}

TEST_P(MathTest, PowKeepsItsDigits) {
  const auto x = random_floats(100000, 1, -8.0f, 8.0f);
  const auto y = random_floats(100000, 2, -12.0f, 12.0f);
  std::vector<float> base(x.size()), z(x.size());
  for (size_t i = 0; i < x.size(); ++i) base[i] = std::exp2(x[i]);
  GetParam().pointwise.tile[static_cast<int>(Scalar::pow)](z.data(), base.data(), y.data(), nullptr,
                                                           static_cast<int64_t>(z.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::pow(static_cast<double>(base[i]), static_cast<double>(y[i]));
    ASSERT_NEAR(z[i] / exact, 1.0, 3e-7) << base[i] << " ^ " << y[i];
  }
}

TEST_P(MathTest, PowAtTheEdgesIsThatOfC) {
  for (float x : {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -0.5f, 2.0f, -2.0f, 1e-40f, 3e38f, kInf, -kInf, kNan})
    for (float y : {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, -2.0f, 3.0f, -3.0f, 0.5f, -0.5f, 1e9f, -1e9f, 16777217.0f,
                    kInf, -kInf, kNan}) {
      const float got = at(Scalar::pow, x, y);
      const float want = std::pow(x, y);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << x << " ^ " << y << " = " << got;
      } else {
        // Subnormal results may be 0.
        if (got != 0.0f || std::abs(want) >= 1.17549435e-38f) {
          EXPECT_FLOAT_EQ(got, want) << x << " ^ " << y;
        }
        EXPECT_EQ(std::signbit(got), std::signbit(want)) << x << " ^ " << y;
      }
    }
}

TEST_P(MathTest, LimitsAtInfinityAndZero) {
  EXPECT_EQ(at(Scalar::exp, kInf), kInf);
  EXPECT_EQ(at(Scalar::exp, 89.0f), kInf);
  EXPECT_EQ(at(Scalar::exp, -kInf), 0.0f);
  EXPECT_EQ(at(Scalar::exp, -200.0f), 0.0f);
  EXPECT_EQ(at(Scalar::exp, 0.0f), 1.0f);
  EXPECT_EQ(at(Scalar::log, kInf), kInf);
  EXPECT_EQ(at(Scalar::log, 0.0f), -kInf);
  EXPECT_EQ(at(Scalar::log, 1.0f), 0.0f);
  EXPECT_TRUE(std::isnan(at(Scalar::log, -1.0f)));
  EXPECT_TRUE(std::isnan(at(Scalar::sqrt, -1.0f)));
  EXPECT_EQ(at(Scalar::rsqrt, 4.0f), 0.5f);
  EXPECT_EQ(at(Scalar::rsqrt, 0.0f), kInf);
  for (Scalar f : {Scalar::tanh, Scalar::erf}) {
    EXPECT_EQ(at(f, kInf), 1.0f);
    EXPECT_EQ(at(f, -kInf), -1.0f);
    EXPECT_FALSE(std::signbit(at(f, 0.0f)));
    EXPECT_TRUE(std::signbit(at(f, -0.0f)));
  }
  EXPECT_EQ(at(Scalar::sigmoid, kInf), 1.0f);
  EXPECT_EQ(at(Scalar::sigmoid, -kInf), 0.0f);
  EXPECT_EQ(at(Scalar::softplus, kInf), kInf);
  EXPECT_EQ(at(Scalar::softplus, -kInf), 0.0f);
  for (Scalar f : {Scalar::gelu_erf, Scalar::gelu_tanh, Scalar::silu}) {
    EXPECT_EQ(at(f, kInf), kInf);
    EXPECT_EQ(at(f, -kInf), 0.0f);
    EXPECT_EQ(at(f, 30.0f), 30.0f);
  }
  for (Scalar f : {Scalar::gelu_erf_grad, Scalar::gelu_tanh_grad, Scalar::silu_grad}) {
    EXPECT_FLOAT_EQ(at(f, kInf), 1.0f);
    EXPECT_NEAR(at(f, -kInf), 0.0f, 1e-30);
    EXPECT_FLOAT_EQ(at(f, 0.0f), 0.5f);
  }
}

TEST_P(MathTest, NanGoesInAndComesOut) {
  for (int f = 0; f < kScalarCount; ++f) {
    const Scalar scalar = static_cast<Scalar>(f);
    const bool predicate = scalar == Scalar::logical_not || (scalar >= Scalar::eq && scalar <= Scalar::where);
    if (predicate) continue;
    EXPECT_TRUE(std::isnan(at(scalar, kNan, 2.0f))) << f;
    if (arity(scalar) >= 2) {
      EXPECT_TRUE(std::isnan(at(scalar, 2.0f, kNan))) << f;
    }
  }
  EXPECT_EQ(at(Scalar::eq, kNan, kNan), 0.0f);
  EXPECT_EQ(at(Scalar::ne, kNan, kNan), 1.0f);
  EXPECT_EQ(at(Scalar::lt, kNan, 1.0f), 0.0f);
  EXPECT_EQ(at(Scalar::logical_not, kNan), 0.0f);
  EXPECT_EQ(at(Scalar::where, kNan, 5.0f), 5.0f);
}

LOCKSTEP_TEST_EVERY_ISA(MathTest);

}  // namespace
}  // namespace lockstep::cpu
