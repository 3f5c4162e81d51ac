// Every task is done once, by its owner or by a helper; faults come to the owner.
#include "data/pipeline/shared_tasks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

TEST(SharedTasks, OneThreadDoesThemInOrder) {
  SharedTasks tasks;
  tasks.help();  // there are none
  std::vector<size_t> done;
  tasks.run(5, [&](size_t index) { done.push_back(index); });
  EXPECT_EQ(done, (std::vector<size_t>{0, 1, 2, 3, 4}));
  tasks.run(0, [&](size_t) { FAIL(); });
}

TEST(SharedTasks, AHelperBeginsAtTheOtherEnd) {
  SharedTasks tasks;
  std::atomic<bool> helped = false;
  std::thread helper;
  const std::thread::id owner = std::this_thread::get_id();
  std::vector<size_t> by_helper;
  // The first task waits for a helper that does all the others.
  tasks.run(5, [&](size_t index) {
    if (index > 0) {
      EXPECT_NE(std::this_thread::get_id(), owner);
      by_helper.push_back(index);
      return;
    }
    helper = std::thread([&] {
      tasks.help();
      helped = true;
    });
    while (!helped) std::this_thread::yield();
  });
  helper.join();
  EXPECT_EQ(by_helper, (std::vector<size_t>{4, 3, 2, 1}));
}

TEST(SharedTasks, ManyThreadsDoEachTaskOnce) {
  constexpr size_t kThreads = 4, kTasks = 50, kRounds = 50;
  SharedTasks tasks;
  std::vector<std::vector<std::atomic<int>>> done(kThreads);
  for (auto& each : done) each = std::vector<std::atomic<int>>(kTasks);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (size_t round = 0; round < kRounds; ++round) {
        tasks.help();
        tasks.run(kTasks, [&](size_t index) { ++done[t][index]; });
        for (const std::atomic<int>& times : done[t]) ASSERT_EQ(times, round + 1);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedTasks, TheFirstFaultIsItsOwnersAndTheOthersAreDone) {
  SharedTasks tasks;
  std::atomic<bool> helped = false;
  std::atomic<int> done = 0;
  std::thread helper;
  try {
    tasks.run(6, [&](size_t index) {
      if (index == 0) {
        helper = std::thread([&] {
          tasks.help();
          helped = true;
        });
        while (!helped) std::this_thread::yield();
      }
      ++done;
      if (index == 2 || index == 4) throw std::runtime_error(std::to_string(index));
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "2");
  }
  helper.join();
  EXPECT_EQ(done, 6);
}

}  // namespace
}  // namespace lockstep
