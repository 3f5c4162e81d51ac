#include "runtime/memory.h"

#include <gtest/gtest.h>

#include "base/philox.h"

namespace lockstep {
namespace {

bool overlaps_wrongly(const std::vector<LiveInterval>& intervals, const Packing& packing) {
  for (size_t a = 0; a < intervals.size(); ++a)
    for (size_t b = a + 1; b < intervals.size(); ++b) {
      const bool together =
          intervals[a].first <= intervals[b].last && intervals[b].first <= intervals[a].last;
      const bool same_bytes = packing.offsets[a] < packing.offsets[b] + intervals[b].bytes &&
                              packing.offsets[b] < packing.offsets[a] + intervals[a].bytes;
      if (together && same_bytes && intervals[a].bytes > 0 && intervals[b].bytes > 0) return true;
    }
  return false;
}

TEST(Memory, ReusesBytesOfTheDead) {
  const std::vector<LiveInterval> intervals{{1000, 0, 1, {}}, {500, 1, 2, {}}, {1000, 2, 3, {}}};
  const Packing packing = pack_intervals(intervals, 64);
  EXPECT_EQ(packing.peak, 1536);
  EXPECT_EQ(packing.lower_bound, 1536);
}

TEST(Memory, NeverSharesBytesOfTheLivingAndStaysNearTheBound) {
  const Philox random(7, 1);
  for (uint64_t round = 0; round < 20; ++round) {
    std::vector<LiveInterval> intervals;
    for (uint64_t i = 0; i < 200; ++i) {
      const uint64_t at = (round * 200 + i) * 3;
      const auto first = static_cast<int32_t>(random.uniform(at) * 300);
      const auto length = static_cast<int32_t>(random.uniform(at + 1) * 40);
      intervals.push_back({static_cast<int64_t>(random.uniform(at + 2) * 1e6), first, first + length, {}});
    }
    const Packing packing = pack_intervals(intervals, 64);
    EXPECT_FALSE(overlaps_wrongly(intervals, packing));
    EXPECT_GE(packing.peak, packing.lower_bound);
    EXPECT_LE(static_cast<double>(packing.peak), 1.25 * static_cast<double>(packing.lower_bound));
  }
}

TEST(Memory, OffsetsAreAlignedAlsoBehindFixedIntervals) {
  // Two fixed entries with 200 and 56 bytes of a caller's buffer, then something that may use the rest.
  const std::vector<LiveInterval> intervals{
      {200, 0, 9, {}, 0}, {56, 9, 9, {}, 200}, {100, 3, 4, {}, -1}, {100, 3, 9, {}, -1}};
  const Packing packing = pack_intervals(intervals, 64, 512);
  EXPECT_EQ(packing.offsets[2] % 64, 0);
  EXPECT_EQ(packing.offsets[3] % 64, 0);
  EXPECT_FALSE(overlaps_wrongly(intervals, packing));
  EXPECT_EQ(packing.peak, 512);
}

TEST(Memory, NothingNeedsNothing) { EXPECT_EQ(pack_intervals({}, 64).peak, 0); }

}  // namespace
}  // namespace lockstep
