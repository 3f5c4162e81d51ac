#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/crowding.h"
#include "base/error.h"
#include "base/file.h"

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

// The letter that /proc has for the state of a thread of this process: R runs, S sleeps.
char state_of(pid_t thread) {
  std::string text = read_file("/proc/self/task/" + std::to_string(thread) + "/stat");
  return text[text.rfind(')') + 2];
}

// One that only makes way for others never leaves the run queue, and has a share of the core that somebody
// else needs.
TEST(ThreadPool, TheCallerSleepsWhileAnotherHasALongTask) {
  ThreadPool pool(2);
  const pid_t caller = gettid();
  std::atomic<int> began{0};
  bool slept = false;
  pool.run_indexed(2, [&](int64_t, int thread) {
    ++began;
    while (began < 2) std::this_thread::yield();  // one task each
    if (thread == 0) return;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!slept && std::chrono::steady_clock::now() < until) slept = state_of(caller) == 'S';
  });
  EXPECT_TRUE(slept);
}

int held_pipe[2];
std::atomic<bool> is_held = false;

// A thread that a signal handler keeps is like one that the system has taken off its core.
void hold(int) {
  is_held = true;
  char byte = 0;
  (void)!read(held_pipe[0], &byte, 1);
}

TEST(ThreadPool, NobodyWaitsForAThreadThatHasNoTask) {
  ASSERT_EQ(pipe(held_pipe), 0);
  struct sigaction action {};
  action.sa_handler = hold;
  struct sigaction before {};
  sigaction(SIGUSR1, &action, &before);
  auto pool = std::make_unique<ThreadPool>(2);
  pthread_t worker{};
  std::atomic<int> began{0};
  pool->run_indexed(2, [&](int64_t, int thread) {
    if (thread == 1) worker = pthread_self();
    ++began;
    while (began < 2) std::this_thread::yield();
  });
  pthread_kill(worker, SIGUSR1);
  while (!is_held) std::this_thread::yield();
  std::atomic<int> by_caller{0};
  auto region = std::async(std::launch::async, [&] {
    for (int round = 0; round < 3; ++round)
      pool->run_indexed(100, [&](int64_t, int thread) { by_caller += thread == 0 ? 1 : 0; });
  });
  EXPECT_EQ(region.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(write(held_pipe[1], "x", 1), 1);
  region.wait();
  EXPECT_EQ(by_caller, 300);
  pool.reset();  // whoever was held has read by now
  sigaction(SIGUSR1, &before, nullptr);
  close(held_pipe[0]);
  close(held_pipe[1]);
}

TEST(ThreadPool, OfSeveralFailuresThatOfTheFirstTaskIsRethrown) {
  ThreadPool pool(2);
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> second = false;
    try {
      pool.run(2, [&](int64_t task) {
        if (task == 1) {
          second = true;
          throw UserError("task 1");
        }
        // As late as can be; on one thread the second is not there yet.
        for (int wait = 0; wait < 10000 && !second; ++wait) std::this_thread::yield();
        for (int wait = 0; wait < 20; ++wait) std::this_thread::yield();
        throw UserError("task 0");
      });
      ADD_FAILURE() << "no error";
    } catch (const UserError& error) {
      EXPECT_STREQ(error.what(), "task 0");
    }
  }
}

TEST(ThreadPool, AFailureOfTheLastTaskIsRethrownToo) {
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round)
    EXPECT_THROW(pool.run(8,
                          [](int64_t task) {
                            if (task == 7) throw std::runtime_error("seven");
                          }),
                 std::runtime_error);
}

TEST(Crowding, FollowsFromSeveralLongJumpsInAShortTime) {
  Crowding crowding;
  const uint64_t clock = __rdtsc();
  EXPECT_FALSE(crowding.note_jump(clock));
  EXPECT_FALSE(crowding.note_jump(clock + 10));
  EXPECT_TRUE(crowding.note_jump(clock + 20));
  EXPECT_TRUE(crowding.now());
  Crowding seldom;
  for (uint64_t i = 0; i < 100; ++i) EXPECT_FALSE(seldom.note_jump(clock + i * (Crowding::kWindow + 1))) << i;
  EXPECT_FALSE(seldom.now());
}

TEST(Crowding, SpinningEndsWhenWhatItWaitsForComes) {
  Crowding crowding;
  int looks = 0;
  EXPECT_TRUE(crowding.spin(UINT64_MAX, [&] { return ++looks == 1000; }));
  EXPECT_FALSE(crowding.spin(0, [] { return true; }));
  EXPECT_FALSE(crowding.spin(10000, [] { return false; }));
}

TEST(ThreadPool, RefusesImpossibleCounts) {
  EXPECT_THROW(ThreadPool(0), UserError);
  EXPECT_THROW(ThreadPool(100000), UserError);
}

}  // namespace
}  // namespace lockstep
