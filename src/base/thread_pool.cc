#include "base/thread_pool.h"

#include <immintrin.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"

namespace lockstep {
namespace {

// Spinning covers the serial gaps between the kernels of a step (waking a sleeper costs tens of
// microseconds); with more threads than processors it would only keep others from running.
constexpr int kSpins = 8000;  // each a pause: about 150 microseconds
constexpr int kCrowdedSpins = 100;

int spins_for(int threads) {
  return threads <= static_cast<int>(std::thread::hardware_concurrency()) ? kSpins : kCrowdedSpins;
}

}  // namespace

struct ThreadPool::Shared {
  // Written by the caller before `generation` is advanced, read by workers after they see the new value.
  Erased body = nullptr;
  const void* context = nullptr;
  int64_t tasks = 0;

  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<uint64_t> generation{0};
  alignas(64) std::atomic<int> busy{0};
  std::atomic<int> sleepers{0};
  std::atomic<bool> stopping{false};
  std::atomic<bool> failed{false};
  int spins = kSpins;

  std::mutex mutex;
  std::condition_variable wake;
  std::exception_ptr error;
  std::vector<std::thread> workers;

  void work(int thread) {
    for (int64_t task = next.fetch_add(1, std::memory_order_relaxed); task < tasks && !failed.load();
         task = next.fetch_add(1, std::memory_order_relaxed)) {
      try {
        body(context, task, thread);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failed.exchange(true)) error = std::current_exception();
      }
    }
  }

  void serve(int thread) {
    uint64_t seen = 0;
    while (true) {
      for (int spin = 0; spin < spins && generation.load(std::memory_order_acquire) == seen; ++spin)
        _mm_pause();
      if (generation.load(std::memory_order_acquire) == seen) sleep_while(seen);
      seen = generation.load(std::memory_order_acquire);
      if (stopping.load()) return;
      work(thread);
      busy.fetch_sub(1, std::memory_order_release);
    }
  }

  // Either this thread sees the new generation after announcing itself, or announce() sees the sleeper.
  void sleep_while(uint64_t seen) {
    std::unique_lock lock(mutex);
    sleepers.fetch_add(1);
    wake.wait(lock, [&] { return generation.load() != seen; });
    sleepers.fetch_sub(1);
  }

  void announce() {
    generation.fetch_add(1);
    if (sleepers.load() == 0) return;
    { const std::lock_guard lock(mutex); }  // whoever counted itself is waiting by now
    wake.notify_all();
  }
};

ThreadPool::ThreadPool(int threads) : threads_(threads), shared_(std::make_unique<Shared>()) {
  if (threads < 1 || threads > 1024) throw UserError("threads is {}; use 1 to 1024", threads);
  shared_->spins = spins_for(threads);
  for (int thread = 1; thread < threads; ++thread)
    shared_->workers.emplace_back([shared = shared_.get(), thread] { shared->serve(thread); });
}

ThreadPool::~ThreadPool() {
  shared_->stopping = true;
  shared_->announce();
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
  shared.tasks = tasks;
  shared.next.store(0, std::memory_order_relaxed);
  shared.failed.store(false);
  shared.busy.store(threads_ - 1, std::memory_order_relaxed);
  shared.announce();
  shared.work(0);
  for (int spin = 0; shared.busy.load(std::memory_order_acquire) != 0; ++spin) {
    if (spin < shared.spins)
      _mm_pause();
    else
      std::this_thread::yield();
  }
  if (shared.failed.load()) std::rethrow_exception(std::exchange(shared.error, nullptr));
}

}  // namespace lockstep
