#include "base/thread_pool.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/cores.h"
#include "base/crowding.h"
#include "base/error.h"

namespace lockstep {
namespace {

// Spinning covers the serial gaps between the kernels of a step: waking a sleeper costs tens of microseconds.
// A caller that waits for the last task goes on looking for longer, but lets others run between two looks. On
// a machine that is busy with something else every look costs time that somebody needs, be it the thread that
// is waited for, and all sleep at once. In cycles of the time-stamp counter, of 1 to 5 GHz.
constexpr uint64_t kSpin = 450'000;  // 100 to 450 microseconds
constexpr uint64_t kCrowdedSpin = 20'000;
constexpr uint64_t kYield = 15'000'000;  // some milliseconds

// Tasks that are offered at once: more are offered one part after the other.
constexpr int64_t kMostTasks = int64_t{1} << 31;

bool more_than_cores(int threads) {
  static const int cores = available_cores().usable;
  return threads > cores;
}

}  // namespace

struct ThreadPool::Shared {
  // Written by the caller before tasks are offered, read by who has claimed one: until that one is finished
  // the region does not end.
  Erased body = nullptr;
  const void* context = nullptr;
  int64_t first = 0, tasks = 0;

  // The number of the region in the upper half, and how many of its tasks nobody has claimed in the lower. As
  // one word, since whoever was late must not claim a task of the next region for one of this.
  alignas(64) std::atomic<uint64_t> offered{0};
  alignas(64) std::atomic<int64_t> unfinished{0};
  alignas(64) std::atomic<int> sleepers{0};
  std::atomic<bool> caller_sleeps{false};
  std::atomic<bool> stopping{false};
  std::atomic<bool> failed{false};
  Crowding crowding;

  std::mutex mutex;
  std::condition_variable wake, finished;
  std::exception_ptr error;
  int64_t failed_task = 0;  // whose error it is: tasks are claimed in order, so none before it fails unseen
  std::vector<std::thread> workers;

  static constexpr uint64_t kRegion = uint64_t{1} << 32;
  static int64_t unclaimed(uint64_t word) { return static_cast<int64_t>(word % kRegion); }

  // Claims and runs tasks until there is none left. After a failure those that are left are claimed only.
  void work(int thread) {
    int64_t done = 0;
    for (uint64_t word = offered.load(); unclaimed(word) > 0;) {
      const int64_t left = unclaimed(word);
      const bool pointless = failed.load(std::memory_order_relaxed);
      const int64_t claimed = pointless ? left : 1;
      if (!offered.compare_exchange_weak(word, word - static_cast<uint64_t>(claimed))) continue;
      if (!pointless) run(first + tasks - left, thread);
      done += claimed;
      word = offered.load();
    }
    if (done == 0 || unfinished.fetch_sub(done) != done || !caller_sleeps.load()) return;
    { const std::lock_guard lock(mutex); }  // it is waiting by now
    finished.notify_one();
  }

  void run(int64_t task, int thread) {
    try {
      body(context, task, thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (failed.exchange(true) && task > failed_task) return;
      failed_task = task;
      error = std::current_exception();
    }
  }

  void serve(int thread) {
    while (true) {
      const uint64_t word = offered.load();
      if (stopping.load()) return;
      if (unclaimed(word) > 0) {
        work(thread);
        continue;
      }
      const auto changed = [&] { return offered.load(std::memory_order_acquire) != word; };
      if (crowding.spin(crowding.now() ? kCrowdedSpin : kSpin, changed)) continue;
      // Either this thread sees the new offer after counting itself, or offer() sees the sleeper.
      std::unique_lock lock(mutex);
      sleepers.fetch_add(1);
      wake.wait(lock, [&] { return offered.load() != word; });
      sleepers.fetch_sub(1);
    }
  }

  // None: only the number changes, at which all look up.
  void offer(int64_t count) {
    const uint64_t word = offered.load(std::memory_order_relaxed);
    offered.store((word / kRegion + 1) * kRegion + static_cast<uint64_t>(count));
    const int asleep = sleepers.load();
    if (asleep == 0) return;
    { const std::lock_guard lock(mutex); }  // whoever counted itself is waiting by now
    // The caller takes one of the tasks.
    if (count == 0 || count > asleep) {
      wake.notify_all();
    } else {
      for (int64_t i = 1; i < count; ++i) wake.notify_one();
    }
  }

  void await_end() {
    const auto over = [&] { return unfinished.load(std::memory_order_acquire) == 0; };
    if (over() || crowding.spin(crowding.now() ? kCrowdedSpin : kSpin, over)) return;
    if (!crowding.now() && crowding.spin(kYield, over, sched_yield)) return;
    std::unique_lock lock(mutex);
    caller_sleeps.store(true);
    finished.wait(lock, [&] { return unfinished.load() == 0; });
    caller_sleeps.store(false);
  }
};

ThreadPool::ThreadPool(int threads) : threads_(threads), shared_(std::make_unique<Shared>()) {
  if (threads < 1 || threads > 1024) throw UserError("threads is {}; use 1 to 1024", threads);
  if (more_than_cores(threads)) shared_->crowding.set_always();
  for (int thread = 1; thread < threads; ++thread)
    shared_->workers.emplace_back([shared = shared_.get(), thread] { shared->serve(thread); });
}

ThreadPool::~ThreadPool() {
  shared_->stopping = true;
  shared_->offer(0);
  for (std::thread& worker : shared_->workers) worker.join();
}

void ThreadPool::run_erased(int64_t tasks, Erased body, const void* context) {
  if (threads_ == 1 || tasks <= 1) {
    for (int64_t task = 0; task < tasks; ++task) body(context, task, 0);
    return;
  }
  Shared& shared = *shared_;
  shared.body = body;
  shared.context = context;
  shared.failed.store(false);
  for (int64_t first = 0; first < tasks && !shared.failed.load(); first += kMostTasks) {
    shared.first = first;
    shared.tasks = std::min(kMostTasks, tasks - first);
    shared.unfinished.store(shared.tasks);
    shared.offer(shared.tasks);
    shared.work(0);
    shared.await_end();
  }
  if (shared.failed.load()) std::rethrow_exception(std::exchange(shared.error, nullptr));
}

}  // namespace lockstep
