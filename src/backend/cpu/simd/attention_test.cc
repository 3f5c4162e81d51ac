// Attention against the textbook formulas in double, for every kind of mask, odd sizes and strided buffers,
// on every instruction set that this processor has; and the bits of any order of units against each other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/simd/attention_loops.h"

namespace lockstep::cpu {
namespace {

struct Variant {
  const char* name;
  const AttentionLoops* loops;
};

std::vector<Variant> available() {
  std::vector<Variant> list = {{"avx2", &avx2::attention_loops}};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    list.push_back({"avx512", &avx512::attention_loops});
  return list;
}

struct Case {
  int64_t B, T, S, H, Hkv, D;
  bool causal = false;
  int64_t window = 0;
  bool documents = false;
  bool padding = false;
  float scale = 0.3f;

  std::string text() const {
    return "B" + std::to_string(B) + " T" + std::to_string(T) + " S" + std::to_string(S) + " H" +
           std::to_string(H) + " Hkv" + std::to_string(Hkv) + " D" + std::to_string(D) +
           (causal ? " causal" : "") + (window ? " window " + std::to_string(window) : "") +
           (documents ? " documents" : "") + (padding ? " padding" : "");
  }
};

constexpr float kUntouched = 12345.0f;

// Rows of one tensor inside a wider buffer, so that a write outside of it shows.
struct Tensor {
  std::vector<float> buffer;
  HeadStrides strides;
  int64_t heads, dim, rows;

  Tensor(int64_t batch, int64_t rows, int64_t heads, int64_t dim)
      : strides{2 * heads * dim + 3, dim + 1, rows * (2 * heads * dim + 3) + 5},
        heads(heads),
        dim(dim),
        rows(rows) {
    buffer.assign(static_cast<size_t>(batch * strides.batch), kUntouched);
  }
  float& at(int64_t b, int64_t t, int64_t h, int64_t d) {
    return buffer[static_cast<size_t>(b * strides.batch + t * strides.row + h * strides.head + d)];
  }
  void randomise(int64_t batch, std::mt19937& random) {
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t t = 0; t < rows; ++t)
        for (int64_t h = 0; h < heads; ++h)
          for (int64_t d = 0; d < dim; ++d) at(b, t, h, d) = uniform(random);
  }
  int64_t untouched() const {
    int64_t n = 0;
    for (float x : buffer) n += x == kUntouched;
    return n;
  }
};

struct Problem {
  Case c;
  Tensor q, k, v, dout, out, dq, dk, dv;
  std::vector<float> logsumexp;
  std::vector<int32_t> documents;
  std::vector<uint8_t> key_visible;

  explicit Problem(const Case& c, uint32_t seed = 1)
      : c(c),
        q(c.B, c.T, c.H, c.D),
        k(c.B, c.S, c.Hkv, c.D),
        v(c.B, c.S, c.Hkv, c.D),
        dout(c.B, c.T, c.H, c.D),
        out(c.B, c.T, c.H, c.D),
        dq(c.B, c.T, c.H, c.D),
        dk(c.B, c.S, c.Hkv, c.D),
        dv(c.B, c.S, c.Hkv, c.D),
        logsumexp(static_cast<size_t>(c.B * c.H * c.T)) {
    std::mt19937 random(seed);
    for (Tensor* t : {&q, &k, &v, &dout}) t->randomise(c.B, random);
    if (c.documents)
      for (int64_t i = 0; i < c.B * c.T; ++i)
        documents.push_back(i % c.T == 0 ? 7 : documents.back() + (random() % 13 == 0 ? 1 : 0));
    if (c.padding)
      for (int64_t i = 0; i < c.B * c.S; ++i) key_visible.push_back(random() % 3 != 0 && i % c.S < c.S - 3);
  }

  AttentionShape shape() const {
    AttentionShape s{c.B, c.T, c.S, c.H, c.Hkv, c.D, c.scale, c.causal, c.window};
    if (c.documents) s.documents = documents.data();
    if (c.padding) s.key_visible = key_visible.data();
    return s;
  }
  AttentionForward forward() {
    return {shape(),          q.buffer.data(), k.buffer.data(), v.buffer.data(), out.buffer.data(),
            logsumexp.data(), q.strides,       k.strides,       v.strides,       out.strides};
  }
  AttentionBackward backward() {
    return {shape(),          q.buffer.data(),    k.buffer.data(),  v.buffer.data(),  out.buffer.data(),
            logsumexp.data(), dout.buffer.data(), dq.buffer.data(), dk.buffer.data(), dv.buffer.data(),
            q.strides,        k.strides,          v.strides,        out.strides,      dout.strides,
            dq.strides,       dk.strides,         dv.strides};
  }

  void run(const AttentionLoops& loops) {
    std::vector<float> scratch(loops.forward_scratch_floats(shape()) + 1, kUntouched);
    loops.forward(forward(), 0, loops.forward_units(shape()), scratch.data() + 1);
    scratch.assign(loops.backward_scratch_floats(shape()) + 1, kUntouched);
    loops.backward(backward(), 0, loops.backward_units(shape()), scratch.data() + 1);
  }

  bool sees(int64_t b, int64_t i, int64_t j) const {
    const int64_t position = i + c.S - c.T;
    if ((c.causal || c.window > 0) && j > position) return false;
    if (c.window > 0 && j <= position - c.window) return false;
    if (c.documents && documents[b * c.T + i] != documents[b * c.T + j]) return false;
    return !c.padding || key_visible[b * c.S + j];
  }
};

void expect_near(double expected, float actual, const char* what) {
  EXPECT_NEAR(expected, actual, 1e-5 * (1.0 + std::fabs(expected))) << what;
}

// All outputs for one query head of one sequence; dk and dv are added to.
void reference_head(Problem& p, int64_t b, int64_t h, std::vector<double>& dk, std::vector<double>& dv) {
  const Case& c = p.c;
  const int64_t kv = h / (c.H / c.Hkv);
  for (int64_t i = 0; i < c.T; ++i) {
    std::vector<double> weight(c.S), out(c.D), dq(c.D);
    double largest = -std::numeric_limits<double>::infinity(), total = 0, delta = 0;
    for (int64_t j = 0; j < c.S; ++j) {
      weight[j] = -std::numeric_limits<double>::infinity();
      if (!p.sees(b, i, j)) continue;
      double dot = 0;
      for (int64_t d = 0; d < c.D; ++d) dot += double(p.q.at(b, i, h, d)) * p.k.at(b, j, kv, d);
      weight[j] = dot * c.scale;
      largest = std::max(largest, weight[j]);
    }
    const float logsumexp = p.logsumexp[(b * c.H + h) * c.T + i];
    const bool blind = std::isinf(largest);
    if (blind) {
      EXPECT_EQ(logsumexp, -std::numeric_limits<float>::infinity());
    }
    for (int64_t j = 0; j < c.S; ++j) total += weight[j] = blind ? 0.0 : std::exp(weight[j] - largest);
    if (!blind) expect_near(largest + std::log(total), logsumexp, "logsumexp");
    for (int64_t j = 0; j < c.S && !blind; ++j) weight[j] /= total;
    for (int64_t j = 0; j < c.S; ++j)
      for (int64_t d = 0; d < c.D; ++d) out[d] += weight[j] * p.v.at(b, j, kv, d);
    for (int64_t d = 0; d < c.D; ++d) {
      delta += out[d] * p.dout.at(b, i, h, d);
      expect_near(out[d], p.out.at(b, i, h, d), "out");
    }
    for (int64_t j = 0; j < c.S; ++j) {
      double dweight = 0;
      for (int64_t d = 0; d < c.D; ++d) dweight += double(p.dout.at(b, i, h, d)) * p.v.at(b, j, kv, d);
      const double dscore = weight[j] * (dweight - delta) * c.scale;
      for (int64_t d = 0; d < c.D; ++d) {
        dv[j * c.D + d] += weight[j] * p.dout.at(b, i, h, d);
        dk[j * c.D + d] += dscore * p.q.at(b, i, h, d);
        dq[d] += dscore * p.k.at(b, j, kv, d);
      }
    }
    for (int64_t d = 0; d < c.D; ++d) expect_near(dq[d], p.dq.at(b, i, h, d), "dq");
  }
}

void expect_reference(Problem& p) {
  const Case& c = p.c;
  const int64_t group = c.H / c.Hkv;
  for (int64_t b = 0; b < c.B; ++b)
    for (int64_t kv = 0; kv < c.Hkv; ++kv) {
      std::vector<double> dk(c.S * c.D), dv(c.S * c.D);
      for (int64_t h = kv * group; h < (kv + 1) * group; ++h) reference_head(p, b, h, dk, dv);
      for (int64_t j = 0; j < c.S; ++j)
        for (int64_t d = 0; d < c.D; ++d) {
          expect_near(dk[j * c.D + d], p.dk.at(b, j, kv, d), "dk");
          expect_near(dv[j * c.D + d], p.dv.at(b, j, kv, d), "dv");
        }
    }
}

void check(const Case& c) {
  for (const Variant& isa : available()) {
    SCOPED_TRACE(std::string(isa.name) + ": " + c.text());
    Problem p(c);
    p.run(*isa.loops);
    expect_reference(p);
    for (Tensor* t : {&p.out, &p.dq, &p.dk, &p.dv})
      EXPECT_EQ(t->untouched(), static_cast<int64_t>(t->buffer.size()) - c.B * t->rows * t->heads * t->dim);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Attention, EveryLengthAndOddHeadDimension) {
  const int64_t dims[] = {1, 3, 8, 16, 17, 24, 33};
  for (int64_t T = 1; T <= 70; ++T)
    for (bool causal : {false, true})
      check({.B = 1, .T = T, .S = T, .H = 1, .Hkv = 1, .D = dims[T % 7], .causal = causal});
}

TEST(Attention, UsualHeadDimensions) {
  for (int64_t D : {16, 32, 48, 64, 80, 96, 128, 200, 256})
    check({.B = 1,
           .T = 67,
           .S = 67,
           .H = 2,
           .Hkv = 1,
           .D = D,
           .causal = true,
           .scale = 1 / std::sqrt(float(D))});
}

TEST(Attention, GroupedHeadsAndBatches) {
  for (int64_t kv : {1, 2, 3, 6})
    check({.B = 3, .T = 37, .S = 37, .H = 6, .Hkv = kv, .D = 12, .causal = true});
}

TEST(Attention, MoreKeysThanQueriesAndFewer) {
  for (bool causal : {false, true})
    for (int64_t T : {1, 5, 64, 70})
      for (int64_t S : {1, 2, 66, 130})
        check({.B = 2, .T = T, .S = S, .H = 2, .Hkv = 2, .D = 20, .causal = causal});
}

TEST(Attention, Windows) {
  for (int64_t w : {1, 2, 7, 31, 64, 65, 100, 500})
    for (bool causal : {false, true})
      for (int64_t S : {150, 171})
        check({.B = 1, .T = 150, .S = S, .H = 1, .Hkv = 1, .D = 9, .causal = causal, .window = w});
}

TEST(Attention, DocumentsAndPadding) {
  for (int mask = 1; mask < 4; ++mask)
    for (bool causal : {false, true})
      for (int64_t w : {0, 20})
        for (int64_t T : {5, 64, 140})
          check({.B = 2,
                 .T = T,
                 .S = T,
                 .H = 2,
                 .Hkv = 1,
                 .D = 18,
                 .causal = causal,
                 .window = w,
                 .documents = (mask & 1) != 0,
                 .padding = (mask & 2) != 0});
}

TEST(Attention, SharpSoftmaxRescalesEarlierBlocks) {
  check({.B = 1, .T = 200, .S = 200, .H = 1, .Hkv = 1, .D = 40, .causal = true, .scale = 3.0f});
}

TEST(Attention, QueriesThatSeeNothingGiveZeroEvenWhereAWholeSequenceIsHidden) {
  const Case c{.B = 2, .T = 70, .S = 70, .H = 1, .Hkv = 1, .D = 8, .padding = true};
  for (const Variant& isa : available()) {
    Problem p(c);
    for (int64_t j = 0; j < c.S; ++j) p.key_visible[j] = 0;
    p.run(*isa.loops);
    expect_reference(p);
    for (int64_t t = 0; t < c.T; ++t)
      for (int64_t d = 0; d < c.D; ++d) {
        EXPECT_EQ(p.out.at(0, t, 0, d), 0.0f);
        EXPECT_EQ(p.dq.at(0, t, 0, d), 0.0f);
        EXPECT_EQ(p.dk.at(0, t, 0, d), 0.0f);
        EXPECT_EQ(p.dv.at(0, t, 0, d), 0.0f);
      }
  }
}

TEST(Attention, ANaNReachesTheOutputsOfTheQueriesThatSeeIt) {
  const Case c{.B = 1, .T = 80, .S = 80, .H = 1, .Hkv = 1, .D = 16, .causal = true};
  for (const Variant& isa : available()) {
    Problem p(c);
    p.k.at(0, 70, 0, 3) = std::numeric_limits<float>::quiet_NaN();
    p.run(*isa.loops);
    for (int64_t t = 0; t < c.T; ++t)
      EXPECT_EQ(std::isnan(p.out.at(0, t, 0, 5)), t >= 70) << isa.name << " " << t;
  }
}

TEST(Attention, BitsDoNotDependOnTheOrderOfUnits) {
  const Case c{.B = 2, .T = 150, .S = 150, .H = 4, .Hkv = 2, .D = 24, .causal = true, .documents = true};
  for (const Variant& isa : available()) {
    Problem whole(c), cut(c);
    whole.run(*isa.loops);
    const AttentionShape shape = cut.shape();
    std::vector<float> scratch(isa.loops->backward_scratch_floats(shape) +
                               isa.loops->forward_scratch_floats(shape));
    for (int64_t unit = isa.loops->forward_units(shape) - 1; unit >= 0; --unit)
      isa.loops->forward(cut.forward(), unit, unit + 1, scratch.data() + unit % 3);
    for (int64_t unit = isa.loops->backward_units(shape) - 1; unit >= 0; --unit)
      isa.loops->backward(cut.backward(), unit, unit + 1, scratch.data() + unit % 3);
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    EXPECT_TRUE(same(whole.out.buffer, cut.out.buffer)) << isa.name;
    EXPECT_TRUE(same(whole.logsumexp, cut.logsumexp)) << isa.name;
    EXPECT_TRUE(same(whole.dq.buffer, cut.dq.buffer)) << isa.name;
    EXPECT_TRUE(same(whole.dk.buffer, cut.dk.buffer)) << isa.name;
    EXPECT_TRUE(same(whole.dv.buffer, cut.dv.buffer)) << isa.name;
  }
}

}  // namespace
}  // namespace lockstep::cpu
