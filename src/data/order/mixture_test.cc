// Mixtures: exact shares, every source read in its order without a gap, changes of shares, golden vectors.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/order/read_order.h"

namespace lockstep {
namespace {

std::vector<Mixture::Draw> first(const Mixture& mixture, int64_t count) {
  std::vector<Mixture::Draw> draws(static_cast<size_t>(count));
  mixture.draws(0, draws);
  return draws;
}

TEST(Mixture, GivesEverySourceItsShareInItsOwnOrder) {
  const std::vector<double> weights{0.62, 0.25, 0.12, 0.01};
  const Mixture mixture(5, {{0, weights}});
  std::vector<int64_t> next(4);
  int64_t position = 0;
  for (const Mixture::Draw& draw : first(mixture, 50 * Mixture::kStretch)) {
    EXPECT_EQ(draw.position, next[static_cast<size_t>(draw.source)]++);
    if (++position % Mixture::kStretch != 0) continue;
    for (size_t i = 1; i < 4; ++i)
      EXPECT_LE(std::fabs(static_cast<double>(next[i]) - weights[i] * static_cast<double>(position)), 1.001);
  }
}

TEST(Mixture, SharesChangeAtAPositionWithoutAGap) {
  const Mixture mixture(5, {{0, {1, 1}}, {10000, {0, 1}}, {12345, {3, 1}}});
  std::vector<int64_t> next(2);
  int64_t position = 0, early = 0;
  for (const Mixture::Draw& draw : first(mixture, 12345 + 8 * Mixture::kStretch)) {
    EXPECT_EQ(draw.position, next[static_cast<size_t>(draw.source)]++);
    EXPECT_TRUE(position < 10000 || position >= 12345 || draw.source == 1) << position;
    if (++position == 12345) early = next[0];
  }
  EXPECT_EQ(next[0] - early, 6 * Mixture::kStretch);
}

TEST(Mixture, AnyPositionEqualsTheWalk) {
  const Mixture mixture(9, {{0, {0.3, 0.7}}, {5000, {0.6, 0.4}}});
  const auto draws = first(mixture, 10000);
  for (int64_t position = 0; position < 10000; position += 211)
    EXPECT_EQ(mixture.at(position), draws[static_cast<size_t>(position)]);
}

TEST(Mixture, SourcesAreMixedInsideAStretch) {
  const auto draws = first(Mixture(9, {{0, {0.5, 0.5}}}), Mixture::kStretch);
  int64_t changes = 0;
  for (size_t i = 1; i < draws.size(); ++i) changes += draws[i].source != draws[i - 1].source;
  EXPECT_GT(changes, Mixture::kStretch / 2 - 200);
  EXPECT_LT(changes, Mixture::kStretch / 2 + 200);
}

TEST(Mixture, GoldenVectors) {
  std::string sources;
  for (const Mixture::Draw& draw : first(Mixture(7, {{0, {0.6, 0.3, 0.1}}}), 32))
    sources += static_cast<char>('0' + draw.source);
  EXPECT_EQ(sources, "11101200010021010100010010000001");
  EXPECT_EQ(Mixture(7, {{0, {0.6, 0.3, 0.1}}}).at(10000000000), (Mixture::Draw{1, 2999999995}));
}

TEST(Mixture, RefusesSharesThatCannotBe) {
  EXPECT_THROW(Mixture(1, {}), UserError);
  EXPECT_THROW(Mixture(1, {{5, {1}}}), UserError);
  EXPECT_THROW(Mixture(1, {{0, {0, 0}}}), UserError);
  EXPECT_THROW(Mixture(1, {{0, {1, -1}}}), UserError);
  EXPECT_THROW(Mixture(1, {{0, {1, 1}}, {0, {1, 1}}}), UserError);
  EXPECT_THROW(Mixture(1, {{0, {1, 1}}, {9, {1}}}), UserError);
}

}  // namespace
}  // namespace lockstep
