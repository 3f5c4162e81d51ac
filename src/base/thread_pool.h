// A fixed set of threads that runs numbered tasks.
//
// The caller cuts its work into tasks by shape alone; which thread runs a task is left open, so results never
// depend on the number of threads. The calling thread takes part, and waits for no thread that has not taken
// a task. Workers spin briefly between parallel regions (a step is hundreds of short ones) and then sleep; on
// a machine that is busy with something else (base/crowding.h) they sleep at once. A task that throws stops
// the region; of several exceptions that of the first task is rethrown to the caller, whichever came first.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace lockstep {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(task) for every task in [0, tasks), in any order, on any thread; returns when all are done.
  template <typename Body>
  void run(int64_t tasks, const Body& body) {
    run_erased(
        tasks, [](const void* context, int64_t task, int) { (*static_cast<const Body*>(context))(task); },
        &body);
  }
  // The same with the index of the running thread (0 is the caller), for per-thread scratch.
  template <typename Body>
  void run_indexed(int64_t tasks, const Body& body) {
    run_erased(
        tasks,
        [](const void* context, int64_t task, int thread) {
          (*static_cast<const Body*>(context))(task, thread);
        },
        &body);
  }

 private:
  using Erased = void (*)(const void* context, int64_t task, int thread);
  void run_erased(int64_t tasks, Erased body, const void* context);

  struct Shared;
  int threads_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace lockstep
