#include "comm/shm/route_choice.h"

#include <gtest/gtest.h>

namespace lockstep::shm {
namespace {

constexpr int64_t kBytes = 1 << 20;

// Runs calls that take as long as given, and counts those that went through the caches.
int64_t through(RouteChoice& choice, int64_t calls, int64_t through_ns, int64_t past_ns) {
  int64_t count = 0;
  for (int64_t i = 0; i < calls; ++i) {
    const bool route = choice.through_caches(kBytes);
    choice.took(kBytes, route, route ? through_ns : past_ns);
    count += route ? 1 : 0;
  }
  return count;
}

TEST(RouteChoice, TriesBothThenKeepsTheFaster) {
  RouteChoice choice;
  EXPECT_EQ(through(choice, 8, 100, 300), 4);
  EXPECT_EQ(through(choice, 100, 100, 90), 100) << "a tenth is not worth a change";
  EXPECT_EQ(through(choice, 100, 100, 300), 100);
  RouteChoice other;
  through(other, 8, 700, 100);
  EXPECT_EQ(through(other, 100, 700, 100), 0);
}

TEST(RouteChoice, FollowsWhenTheMachineChanges) {
  RouteChoice choice;
  through(choice, 300, 100, 300);
  through(choice, 50, 900, 300);
  EXPECT_EQ(through(choice, 100, 900, 300), 0);
}

TEST(RouteChoice, OneInterruptedCallChangesNothing) {
  RouteChoice choice;
  through(choice, 100, 100, 300);
  through(choice, 1, 1'000'000, 300);
  EXPECT_EQ(through(choice, 20, 100, 300), 20);
}

}  // namespace
}  // namespace lockstep::shm
