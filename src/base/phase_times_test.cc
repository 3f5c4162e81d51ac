#include "base/phase_times.h"

#include <gtest/gtest.h>

#include <thread>

namespace lockstep {
namespace {

TEST(PhaseTimes, PartsOfOneNameAreAddedUpInTheOrderOfTheFirst) {
  PhaseTimes times;
  times.add("plan", 0.5);
  times.add("state", 0.25);
  times.add("plan", 1);
  const auto all = times.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "plan");
  EXPECT_EQ(all[0].seconds, 1.5);
  EXPECT_EQ(all[0].times, 2);
  EXPECT_EQ(all[1].name, "state");
}

TEST(PhaseTimes, ABodyIsTimedAndReturned) {
  PhaseTimes times;
  EXPECT_EQ(times.timed("sum", [] { return 1 + 1; }), 2);
  EXPECT_THROW(times.timed("failure", []() -> int { throw 1; }), int);
  ASSERT_EQ(times.all().size(), 2u);
  EXPECT_GE(times.all()[0].seconds, 0);
}

TEST(PhaseTimes, ThreadsMayAdd) {
  PhaseTimes times;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        for (int k = 0; k < 100; ++k) times.add("same", 1);
      });
  }
  ASSERT_EQ(times.all().size(), 1u);
  EXPECT_EQ(times.all()[0].times, 800);
  EXPECT_EQ(times.all()[0].seconds, 800);
}

}  // namespace
}  // namespace lockstep
