// Quantiles: how exact they are, and that no order of values or sketches changes them.
#include "data/transform/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "data/order/draws.h"

namespace lockstep {
namespace {

std::vector<double> spread_values(int64_t count) {
  std::vector<double> values;
  Draws draws(1, 2, 3);
  for (int64_t i = 0; i < count; ++i) values.push_back(draws.normal() * (i % 3 == 0 ? 1e6 : 1e-3));
  return values;
}

QuantileSketch sketch_of(const std::vector<double>& values) {
  QuantileSketch sketch;
  for (const double value : values) sketch.add(value);
  return sketch;
}

TEST(QuantileSketch, IsExactForWholeNumbers) {
  QuantileSketch sketch;
  for (int i = 8191; i >= 0; --i) sketch.add(i);
  for (const int64_t rank : {0, 1, 77, 4095, 8191}) EXPECT_EQ(sketch.at(rank), static_cast<double>(rank));
}

TEST(QuantileSketch, IsOffByLessThanItsCells) {
  std::vector<double> values = spread_values(20000);
  const QuantileSketch sketch = sketch_of(values);
  std::sort(values.begin(), values.end());
  for (int64_t rank = 0; rank < 20000; rank += 97) {
    const double exact = values[static_cast<size_t>(rank)];
    EXPECT_LE(sketch.at(rank), exact);
    EXPECT_GE(sketch.at(rank), exact - std::abs(exact) / 4096 * 1.001) << rank;
  }
  EXPECT_EQ(sketch.smallest(), values[0]);
}

TEST(QuantileSketch, DoesNotDependOnAnyOrder) {
  const std::vector<double> values = spread_values(3000);
  const QuantileSketch one = sketch_of(values);
  QuantileSketch merged = sketch_of({values.begin() + 2000, values.end()});
  merged.merge(sketch_of({values.begin(), values.begin() + 700}));
  merged.merge(sketch_of({values.rbegin() + 1000, values.rend() - 700}));
  ASSERT_EQ(merged.count(), one.count());
  for (int64_t rank = 0; rank < 3000; ++rank) EXPECT_EQ(merged.at(rank), one.at(rank));
}

TEST(QuantileSketch, ZeroHasOneSign) {
  QuantileSketch sketch;
  sketch.add(-0.0);
  sketch.add(0.0);
  EXPECT_FALSE(std::signbit(sketch.at(0)));
}

}  // namespace
}  // namespace lockstep
