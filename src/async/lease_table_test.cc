#include "async/lease_table.h"

#include <gtest/gtest.h>

#include <random>

namespace lockstep::async {
namespace {

TEST(LeaseTable, HandsOutInOrderAndCountsVersions) {
  LeaseTable table(3, 2, {});
  EXPECT_EQ(*table.grant(), (Lease{1, 1, 0}));
  EXPECT_EQ(*table.grant(), (Lease{2, 1, 0}));
  EXPECT_EQ(table.apply(2), (AppliedPush{2, 0, false}));
  EXPECT_EQ(*table.grant(), (Lease{3, 1, 1}));
  EXPECT_FALSE(table.grant());  // there are no more
}

TEST(LeaseTable, HasNoMoreInFlightThanTheBoundPermits) {
  LeaseTable table(10, 1, {});
  EXPECT_TRUE(table.grant());
  EXPECT_TRUE(table.grant());
  // A third one that reads version 0 would be applied as version 3: two versions old.
  EXPECT_FALSE(table.grant());
  table.apply(1);
  // Lease 2 must be next: one more may be in flight, which is applied after it.
  EXPECT_TRUE(table.grant());
  EXPECT_FALSE(table.may_apply(3));
  EXPECT_TRUE(table.may_apply(2));
}

TEST(LeaseTable, TakesBackWhatAWorkerLeaves) {
  LeaseTable table(5, 4, {});
  const Lease first = *table.grant();
  table.grant();
  table.give_back(first.number);
  EXPECT_FALSE(table.is_current(first.number, first.attempt));
  table.apply(2);
  const Lease again = *table.grant();
  EXPECT_EQ(again, (Lease{1, 2, 1}));
  EXPECT_FALSE(table.is_current(1, 1));
  EXPECT_TRUE(table.is_current(1, 2));
}

TEST(LeaseTable, GoesOnAfterALog) {
  LeaseTable table(6, 4, {{.lease = 1, .read = 0}, {.lease = 4, .read = 0}});
  EXPECT_EQ(table.version(), 2);
  std::vector<int64_t> numbers;
  while (const auto lease = table.grant()) {
    EXPECT_EQ(lease->read, table.version());
    numbers.push_back(lease->number);
    table.apply(lease->number);
  }
  EXPECT_EQ(numbers, (std::vector<int64_t>{2, 3, 5, 6}));
}

// Workers of random speeds that also die: every lease is applied once, none too late, and somebody can always
// go on.
TEST(LeaseTable, KeepsTheBoundWhateverHappens) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return random() % n; };
    const int64_t last = 40, staleness = static_cast<int64_t>(1 + below(6));
    const size_t workers = 1 + below(6);
    LeaseTable table(last, staleness, {});
    std::vector<std::optional<Lease>> of(workers);
    std::set<int64_t> applied;
    int64_t turns = 0;
    while (table.version() < last) {
      ASSERT_LT(++turns, 100000) << "nobody can go on, seed " << seed;
      std::optional<Lease>& lease = of[below(workers)];
      if (!lease) {
        lease = table.grant();
      } else if (below(10) == 0) {
        table.give_back(lease->number);
        lease.reset();
      } else if (table.may_apply(lease->number)) {
        const AppliedPush push = table.apply(lease->number);
        ASSERT_LE(table.version() - 1 - push.read, staleness) << "seed " << seed;
        ASSERT_TRUE(applied.insert(push.lease).second) << "seed " << seed;
        lease.reset();
      }
    }
    EXPECT_EQ(applied.size(), static_cast<size_t>(last));
    EXPECT_EQ(table.in_flight(), 0u);
  }
}

// One of four is five times slower. With the bound that theory gives, the others are not held up; with less,
// in proportion.
TEST(LeaseTable, ASlowWorkerHoldsUpOthersInProportionToTheBound) {
  const auto share = [](int64_t staleness) {
    const int64_t last = 2000;
    LeaseTable table(last, staleness, {});
    std::vector<std::optional<Lease>> of(4);
    std::vector<int64_t> ready(4, 0);
    int64_t now = 0;
    for (; table.version() < last; ++now)
      for (size_t w = 0; w < 4; ++w) {
        if (of[w] && now >= ready[w] && table.may_apply(of[w]->number)) {
          table.apply(of[w]->number);
          of[w].reset();
        }
        if (of[w]) continue;
        if ((of[w] = table.grant())) ready[w] = now + (w == 3 ? 50 : 10);
      }
    return static_cast<double>(last) / (static_cast<double>(now) * (3 / 10.0 + 1 / 50.0));
  };
  EXPECT_GT(share(16), 0.97);
  EXPECT_GT(share(13), 0.82);
  EXPECT_LT(share(4), 0.45);
}

}  // namespace
}  // namespace lockstep::async
