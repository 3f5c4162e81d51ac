#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::atomic<int>> runs(257);
      pool.run(257, [&](int64_t task) { ++runs[static_cast<size_t>(task)]; });
      for (const auto& count : runs) ASSERT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPool, NamesTheThreadForScratch) {
  ThreadPool pool(4);
  std::atomic<int> worst{0};
  pool.run_indexed(100, [&](int64_t, int thread) {
    if (thread < 0 || thread >= 4) ++worst;
  });
  EXPECT_EQ(worst.load(), 0);
}

TEST(ThreadPool, RethrowsTheFirstErrorAndStaysUsable) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.run(64,
                        [](int64_t task) {
                          if (task == 5) throw std::runtime_error("five");
                        }),
               std::runtime_error);
  std::atomic<int> runs{0};
  pool.run(64, [&](int64_t) { ++runs; });
  EXPECT_EQ(runs.load(), 64);
}

TEST(ThreadPool, RefusesImpossibleCounts) {
  EXPECT_THROW(ThreadPool(0), UserError);
  EXPECT_THROW(ThreadPool(100000), UserError);
}

}  // namespace
}  // namespace lockstep
