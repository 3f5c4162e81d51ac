#include "base/byte_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

TEST(ByteBudget, TakesNothingWhereTheLimitWouldBePassed) {
  ByteBudget budget(10);
  EXPECT_TRUE(budget.try_take(7));
  EXPECT_FALSE(budget.try_take(4));
  EXPECT_EQ(budget.used(), 7);
  EXPECT_TRUE(budget.try_take(3));
  EXPECT_EQ(budget.peak(), 10);
}

TEST(ByteBudget, AsksForRoomBeforeTheLimitIsPassed) {
  ByteBudget budget(10);
  int64_t held = 8;  // that can be had again
  budget.take(held);
  budget.on_shortage([&](int64_t bytes) {
    const int64_t gone = std::min(held, bytes);
    held -= gone;
    budget.give(gone);
  });
  budget.take(9);
  EXPECT_EQ(budget.used(), 9 + held);
  EXPECT_LE(budget.peak(), 10);
  budget.take(9);  // there is nothing left to let go
  EXPECT_EQ(budget.used(), 18);
}

TEST(ByteBudget, StaysWithinTheLimitWhereThreadsTakeAtOnce) {
  ByteBudget budget(1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20000; ++i)
        if (const int64_t bytes = 100 + 37 * t + i % 90; budget.try_take(bytes)) budget.give(bytes);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used(), 0);
  EXPECT_LE(budget.peak(), 1000);
}

}  // namespace
}  // namespace lockstep
