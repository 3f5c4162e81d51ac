// Optimizer loops against plain formulas in double, and the equalities that hold bit for bit.
#include "backend/cpu/simd/optimizer_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include "backend/cpu/optimizer_steps.h"
#include "backend/cpu/simd/adafactor_loops.h"
#include "backend/cpu/simd/available_loops.h"
#include "backend/cpu/simd/lamb_loops.h"
#include "base/philox.h"

namespace lockstep::cpu {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Floats normal_values(size_t n, uint64_t stream, float scale = 1.0f) {
  Floats x(n);
  Philox(21, stream).fill_normal(x, 0.0f, scale);
  return x;
}

std::vector<uint32_t> bits(const Floats& x) {
  std::vector<uint32_t> result;
  for (float value : x) result.push_back(std::bit_cast<uint32_t>(value));
  return result;
}

void expect_near(const Floats& x, const Doubles& expected, double tolerance, const std::string& what) {
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(x[i], expected[i], tolerance * std::max(1.0, std::fabs(expected[i]))) << what << " at " << i;
}

void expect_bf16_of(const std::vector<uint16_t>& narrow, const Floats& p) {
  for (size_t i = 0; i < p.size(); ++i) {
    const uint32_t wide = std::bit_cast<uint32_t>(p[i]);
    ASSERT_EQ(narrow[i], (wide + 0x7fff + (wide >> 16 & 1)) >> 16) << i;
  }
}

auto optimizers() { return available_loops(avx2::optimizer_loops, avx512::optimizer_loops); }

// n elements, updated in three ragged ranges.
constexpr int64_t kElements = 77;
constexpr int64_t kCuts[] = {0, 5, 48, kElements};

void in_ranges(const std::function<void(int64_t, int64_t)>& update) {
  for (int k = 0; k < 3; ++k) update(kCuts[k], kCuts[k + 1]);
}

TEST(OptimizerLoops, SgdFollowsItsFormula) {
  for (const auto& [isa, loops] : optimizers())
    for (bool nesterov : {false, true})
      for (bool momentum : {false, true}) {
        const SgdStep step = {0.5f, 0.1f, momentum ? 0.9f : 0.0f, 0.01f, nesterov && momentum};
        Floats p = normal_values(kElements, 1), buf(kElements);
        std::vector<uint16_t> narrow(kElements);
        Doubles p_ref(p.begin(), p.end()), buf_ref(kElements);
        for (int t = 0; t < 5; ++t) {
          const Floats g = normal_values(kElements, 100 + t);
          in_ranges([&, &loops = loops](int64_t begin, int64_t end) {
            loops.sgd(p.data(), momentum ? buf.data() : nullptr, g.data(), narrow.data(), begin, end, step);
          });
          for (int64_t i = 0; i < kElements; ++i) {
            const double d = 0.5 * g[i] + 0.01 * p_ref[i];
            buf_ref[i] = (momentum ? 0.9 : 0.0) * buf_ref[i] + d;
            p_ref[i] -= 0.1 * (step.nesterov ? d + 0.9 * buf_ref[i] : buf_ref[i]);
          }
        }
        expect_near(p, p_ref, 1e-6, isa);
        expect_bf16_of(narrow, p);
      }
}

TEST(OptimizerLoops, AdamAndAdamwFollowTheirFormulas) {
  const AdamOptions options = {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6, .weight_decay = 0.1};
  for (const auto& [isa, loops] : optimizers())
    for (bool decoupled : {false, true}) {
      Floats p = normal_values(kElements, 2), m(kElements), v(kElements);
      std::vector<uint16_t> narrow(kElements);
      Doubles p_ref(p.begin(), p.end()), m_ref(kElements), v_ref(kElements);
      for (int t = 1; t <= 6; ++t) {
        const Floats g = normal_values(kElements, 200 + t);
        const AdamStep step = adam_step(options, t, 0.25f);
        in_ranges([&, &loops = loops](int64_t begin, int64_t end) {
          (decoupled ? loops.adamw : loops.adam)(p.data(), m.data(), v.data(), g.data(), narrow.data(), begin,
                                                 end, step);
        });
        for (int64_t i = 0; i < kElements; ++i) {
          double d = 0.25 * g[i];
          if (decoupled)
            p_ref[i] *= 1.0 - 0.01 * 0.1;
          else
            d += 0.1 * p_ref[i];
          m_ref[i] = 0.9 * m_ref[i] + 0.1 * d;
          v_ref[i] = 0.99 * v_ref[i] + 0.01 * d * d;
          const double denominator = std::sqrt(v_ref[i]) / std::sqrt(1.0 - std::pow(0.99, t)) + 1e-6;
          p_ref[i] -= 0.01 / (1.0 - std::pow(0.9, t)) * m_ref[i] / denominator;
        }
      }
      expect_near(p, p_ref, 2e-6, isa);
      expect_bf16_of(narrow, p);
    }
}

TEST(OptimizerLoops, LionFollowsItsFormula) {
  const AdamOptions options = {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1};
  const LionStep step = lion_step(options, 0.5f);
  for (const auto& [isa, loops] : optimizers()) {
    Floats p = normal_values(kElements, 3), m(kElements);
    Doubles p_ref(p.begin(), p.end()), m_ref(kElements);
    for (int t = 0; t < 5; ++t) {
      Floats g = normal_values(kElements, 300 + t);
      g[7] = 0.0f;
      in_ranges([&, &loops = loops](int64_t begin, int64_t end) {
        loops.lion(p.data(), m.data(), g.data(), nullptr, begin, end, step);
      });
      for (int64_t i = 0; i < kElements; ++i) {
        const double d = 0.5 * g[i], direction = 0.9 * m_ref[i] + 0.1 * d;
        p_ref[i] = p_ref[i] * (1.0 - 0.01 * 0.1) - 0.01 * ((direction > 0) - (direction < 0));
        m_ref[i] = 0.99 * m_ref[i] + 0.01 * d;
      }
    }
    expect_near(p, p_ref, 1e-6, isa);
  }
}

TEST(OptimizerLoops, RangesDoNotChangeBits) {
  const AdamStep step = adam_step({.weight_decay = 0.1}, 3, 0.5f);
  for (const auto& [isa, loops] : optimizers()) {
    const Floats g = normal_values(kElements, 4);
    Floats p1 = normal_values(kElements, 5), m1 = normal_values(kElements, 6, 0.1f), v1(kElements, 0.02f);
    Floats p2 = p1, m2 = m1, v2 = v1;
    loops.adamw(p1.data(), m1.data(), v1.data(), g.data(), nullptr, 0, kElements, step);
    in_ranges([&, &loops = loops](int64_t begin, int64_t end) {
      loops.adamw(p2.data(), m2.data(), v2.data(), g.data(), nullptr, begin, end, step);
    });
    EXPECT_EQ(bits(p1), bits(p2)) << isa;
    EXPECT_EQ(bits(m1), bits(m2)) << isa;
    EXPECT_EQ(bits(v1), bits(v2)) << isa;
  }
}

// Long enough for moments to fall through the denormals; signed zeros and an untouched row included.
TEST(OptimizerLoops, ReplayEqualsDenseStepsWithZeroGradient) {
  for (const auto& [isa, loops] : optimizers())
    for (int64_t n : {1, 15, 77, 200})
      for (int64_t k : {0, 1, 7, 1500}) {
        std::vector<AdamStep> steps;
        for (int64_t t = 0; t < k; ++t)
          steps.push_back(adam_step({.lr = 1e-3 * (t + 1) / k, .weight_decay = 0.1}, t + 4, 1.0f / (t + 1)));
        const Floats g(n, 0.0f);
        Floats p1 = normal_values(n, 7), m1 = normal_values(n, 8, 1e-3f), v1(n);
        for (int64_t i = 0; i < n; ++i) v1[i] = m1[i] * m1[i];
        p1[0] = -0.0f;
        m1[n / 2] = -0.0f;
        v1[n / 2] = 0.0f;
        m1[n - 1] = v1[n - 1] = 0.0f;
        Floats p2 = p1, m2 = m1, v2 = v1;
        std::vector<uint16_t> narrow1(n), narrow2(n);
        for (const AdamStep& step : steps)
          loops.adamw(p1.data(), m1.data(), v1.data(), g.data(), narrow1.data(), 0, n, step);
        loops.adamw_replay(p2.data(), m2.data(), v2.data(), narrow2.data(), n, steps.data(), k);
        ASSERT_EQ(bits(p1), bits(p2)) << isa << " n " << n << " k " << k;
        ASSERT_EQ(bits(m1), bits(m2)) << isa << " n " << n << " k " << k;
        ASSERT_EQ(bits(v1), bits(v2)) << isa << " n " << n << " k " << k;
        if (k > 0) {
          ASSERT_EQ(narrow1, narrow2);
        }
      }
}

TEST(LambLoops, FollowsItsFormula) {
  const AdamOptions options = {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6, .weight_decay = 0.1};
  const int64_t n = 2500, blocks = norm_blocks(n);
  for (const auto& [isa, loops] : available_loops(avx2::lamb_loops, avx512::lamb_loops)) {
    Floats p = normal_values(n, 9), m(n), v(n);
    Doubles p_ref(p.begin(), p.end()), m_ref(n), v_ref(n);
    for (int t = 1; t <= 4; ++t) {
      Floats u = normal_values(n, 400 + t);
      const Floats g = u;
      const LambStep step = lamb_step(options, t, 0.5f);
      Doubles p_squares(blocks), u_squares(blocks);
      for (int64_t b = 0; b < blocks; ++b)
        loops.moments(p.data(), m.data(), v.data(), u.data(), u.data(), n, b, b + 1, step, p_squares.data(),
                      u_squares.data());
      const float lr_trust = lamb_lr_trust(0.01, std::accumulate(p_squares.begin(), p_squares.end(), 0.0),
                                           std::accumulate(u_squares.begin(), u_squares.end(), 0.0));
      loops.apply(p.data(), u.data(), nullptr, 0, 1000, lr_trust);
      loops.apply(p.data(), u.data(), nullptr, 1000, n, lr_trust);

      Doubles u_ref(n);
      double p_norm = 0, u_norm = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double d = 0.5 * g[i];
        m_ref[i] = 0.9 * m_ref[i] + 0.1 * d;
        v_ref[i] = 0.99 * v_ref[i] + 0.01 * d * d;
        const double m_hat = m_ref[i] / (1 - std::pow(0.9, t)), v_hat = v_ref[i] / (1 - std::pow(0.99, t));
        u_ref[i] = m_hat / (std::sqrt(v_hat) + 1e-6) + 0.1 * p_ref[i];
        p_norm += p_ref[i] * p_ref[i];
        u_norm += u_ref[i] * u_ref[i];
      }
      for (int64_t i = 0; i < n; ++i) p_ref[i] -= 0.01 * std::sqrt(p_norm / u_norm) * u_ref[i];
    }
    expect_near(p, p_ref, 2e-6, isa);
  }
  EXPECT_EQ(lamb_lr_trust(0.5, 0.0, 1.0), 0.5f);
  EXPECT_EQ(lamb_lr_trust(0.5, 1.0, 0.0), 0.5f);
}

// The formulas in double, for one matrix; rows = 1 is never factored.
struct AdafactorReference {
  int64_t rows, cols;
  Doubles p, row, col, v, m;

  void step(const Floats& g, int t, bool factored, bool momentum) {
    const double beta2 = 1.0 - std::pow(t, -0.8), lr = 0.05, n = static_cast<double>(rows * cols);
    Doubles u(g.size());
    if (factored) {
      Doubles row_mean(rows), col_mean(cols);
      for (int64_t i = 0; i < rows * cols; ++i) {
        const double square = 0.25 * g[i] * g[i] + 1e-30;
        row_mean[i / cols] += square / cols;
        col_mean[i % cols] += square / rows;
      }
      double mean = 0;
      for (int64_t r = 0; r < rows; ++r) row[r] = beta2 * row[r] + (1 - beta2) * row_mean[r];
      for (int64_t c = 0; c < cols; ++c) col[c] = beta2 * col[c] + (1 - beta2) * col_mean[c];
      for (int64_t r = 0; r < rows; ++r) mean += row[r] / rows;
      for (int64_t i = 0; i < rows * cols; ++i)
        u[i] = 0.5 * g[i] / std::sqrt(row[i / cols] / mean) / std::sqrt(col[i % cols]);
    } else {
      for (size_t i = 0; i < g.size(); ++i) {
        v[i] = beta2 * v[i] + (1 - beta2) * (0.25 * g[i] * g[i] + 1e-30);
        u[i] = 0.5 * g[i] / std::sqrt(v[i]);
      }
    }
    double squares = 0;
    for (double x : u) squares += x * x;
    const double clip = std::max(1.0, std::sqrt(squares / n));
    for (size_t i = 0; i < g.size(); ++i) {
      double move = lr * u[i] / clip;
      if (momentum) move = m[i] = 0.9 * m[i] + 0.1 * move;
      p[i] = p[i] * (1 - lr * 0.1) - move;
    }
  }
};

auto adafactors() { return available_loops(avx2::adafactor_loops, avx512::adafactor_loops); }

TEST(AdafactorLoops, MatrixFollowsThePaper) {
  const int64_t rows = 70, cols = 45, n = rows * cols, units = adafactor_units(rows);
  for (const auto& [isa, loops] : adafactors())
    for (bool momentum : {false, true}) {
      Floats p = normal_values(n, 10), m(n), row(rows), col(cols), row_factor(rows), col_factor(cols);
      AdafactorReference reference{rows, cols,      Doubles(p.begin(), p.end()), Doubles(rows), Doubles(cols),
                                   {},   Doubles(n)};
      std::vector<uint16_t> narrow(n);
      for (int t = 1; t <= 5; ++t) {
        const Floats g = normal_values(n, 500 + t, static_cast<float>(t));
        const AdafactorStep step = adafactor_step(t, 1e-30, 0.5f);
        Floats sums(units * cols);
        Doubles squares(units);
        for (int64_t u = units - 1; u >= 0; --u)
          loops.row_stats(g.data(), rows, cols, u, u + 1, step, row.data(), sums.data());
        loops.column_stats(sums.data(), rows, cols, 0, 20, step, col.data(), col_factor.data());
        loops.column_stats(sums.data(), rows, cols, 20, cols, step, col.data(), col_factor.data());
        loops.row_factors(row.data(), rows, row_factor.data());
        loops.update_squares(g.data(), row_factor.data(), col_factor.data(), rows, cols, 0, units, 0.5f,
                             squares.data());
        const AdafactorApply apply = adafactor_apply(
            0.05, std::accumulate(squares.begin(), squares.end(), 0.0), n, 1.0, 0.9, 0.1, 0.5f);
        loops.apply(p.data(), momentum ? m.data() : nullptr, g.data(), row_factor.data(), col_factor.data(),
                    narrow.data(), cols, 0, 33, apply);
        loops.apply(p.data(), momentum ? m.data() : nullptr, g.data(), row_factor.data(), col_factor.data(),
                    narrow.data(), cols, 33, rows, apply);
        reference.step(g, t, true, momentum);
      }
      expect_near(p, reference.p, 3e-6, isa);
      expect_near(row, reference.row, 3e-6, isa);
      expect_near(col, reference.col, 3e-6, isa);
      expect_bf16_of(narrow, p);
    }
}

TEST(AdafactorLoops, VectorFollowsThePaper) {
  const int64_t n = 1500, blocks = norm_blocks(n);
  for (const auto& [isa, loops] : adafactors()) {
    Floats p = normal_values(n, 11), v(n);
    AdafactorReference reference{1, n, Doubles(p.begin(), p.end()), {}, {}, Doubles(n), {}};
    for (int t = 1; t <= 5; ++t) {
      const Floats g = normal_values(n, 600 + t, static_cast<float>(t));
      Doubles squares(blocks);
      loops.vector_moment(v.data(), g.data(), n, 1, 2, adafactor_step(t, 1e-30, 0.5f), squares.data());
      loops.vector_moment(v.data(), g.data(), n, 0, 1, adafactor_step(t, 1e-30, 0.5f), squares.data());
      const AdafactorApply apply = adafactor_apply(0.05, squares[0] + squares[1], n, 1.0, 0.0, 0.1, 0.5f);
      loops.vector_apply(p.data(), nullptr, v.data(), g.data(), nullptr, 0, n, apply);
      reference.step(g, t, false, false);
    }
    expect_near(p, reference.p, 3e-6, isa);
    expect_near(v, reference.v, 3e-6, isa);
  }
}

}  // namespace
}  // namespace lockstep::cpu
