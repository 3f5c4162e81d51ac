// The order of a sum depends on shape alone: not on threads, not on how the terms are handed in.
#include "backend/cpu/sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

// Terms made on the fly in one buffer per thread, like those of a fused expression.
class MadeTerms : public TermSource {
 public:
  MadeTerms(int threads, int64_t largest)
      : largest_(largest), buffers_(static_cast<size_t>(threads * largest)) {}
  static float term(int64_t i) { return 1.0f / static_cast<float>(1 + i * 7919 % 1000); }
  const float* terms(int64_t begin, int64_t count, int thread) const override {
    float* buffer = buffers_.data() + thread * largest_;
    EXPECT_LE(count, largest_);
    for (int64_t i = 0; i < count; ++i) buffer[i] = term(begin + i);
    return buffer;
  }
  int64_t largest() const override { return largest_; }

 private:
  int64_t largest_;
  mutable std::vector<float> buffers_;
};

std::vector<float> sum_with(const SumShape& shape, int threads, const TermSource& source) {
  ThreadPool pool(threads);
  const CpuContext context{pool, simd_for(detect_isa())};
  std::vector<float> out(static_cast<size_t>(shape.outer * shape.inner));
  std::vector<float> workspace(static_cast<size_t>(sum_workspace(shape)));
  sum_terms(context, shape, source, out.data(), workspace.data());
  return out;
}

const SumShape kShapes[] = {{5, 33, 1},  {300, 7, 1},   {2, 5000, 1}, {1, 300000, 1}, {1, 1000, 3},
                            {3, 70, 40}, {1, 65, 9000}, {4, 0, 3},    {0, 5, 3},      {2, 9000, 2}};

TEST(Sums, SameBitsForThreadsAndSources) {
  for (const SumShape& shape : kShapes) {
    std::vector<float> terms(static_cast<size_t>(shape.numel()));
    for (int64_t i = 0; i < shape.numel(); ++i) terms[static_cast<size_t>(i)] = MadeTerms::term(i);
    const auto want = sum_with(shape, 1, FloatTerms(terms.data()));
    for (const int threads : {2, 5})
      for (const int64_t largest : {kSumPiece, 3 * kSumPiece})
        EXPECT_EQ(sum_with(shape, threads, MadeTerms(threads, largest)), want)
            << shape.outer << " x " << shape.reduced << " x " << shape.inner;
  }
}

TEST(Sums, CloseToDoublePrecision) {
  for (const SumShape& shape : kShapes) {
    const auto sums = sum_with(shape, 2, MadeTerms(2, kSumPiece));
    for (int64_t o = 0; o < shape.outer; ++o)
      for (int64_t i = 0; i < shape.inner; ++i) {
        double want = 0;
        for (int64_t r = 0; r < shape.reduced; ++r)
          want += MadeTerms::term((o * shape.reduced + r) * shape.inner + i);
        EXPECT_NEAR(sums[static_cast<size_t>(o * shape.inner + i)], want, 1e-6 * want);
      }
  }
}

bool same(const SumShape& a, const SumShape& b) {
  return a.outer == b.outer && a.reduced == b.reduced && a.inner == b.inner;
}

TEST(Sums, AxesMergeIntoPasses) {
  const auto leading = sum_passes({4, 5, 6}, {0, 1});
  ASSERT_EQ(leading.size(), 1u);
  EXPECT_TRUE(same(leading[0], {1, 20, 6}));
  const auto around_one = sum_passes({4, 1, 6}, {0, 2});
  ASSERT_EQ(around_one.size(), 1u);
  EXPECT_TRUE(same(around_one[0], {1, 24, 1}));
  const auto alternate = sum_passes({4, 5, 6}, {0, 2});
  ASSERT_EQ(alternate.size(), 2u);
  EXPECT_TRUE(same(alternate[0], {20, 6, 1}));
  EXPECT_TRUE(same(alternate[1], {1, 4, 5}));
  const auto nothing = sum_passes({4, 1}, {1});
  ASSERT_EQ(nothing.size(), 1u);
  EXPECT_TRUE(same(nothing[0], {4, 1, 1}));
}

}  // namespace
}  // namespace lockstep::cpu
