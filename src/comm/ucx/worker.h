// UCX's context and worker, and who may use them when.
//
// The worker is used by one thread at a time, under a lock. A thread that waits for something drives the
// worker: it moves whatever can be moved, for all threads; when nothing moves it spins briefly, then sleeps
// on UCX's event descriptor with the lock released. Other threads that wait meanwhile are told when something
// has moved. Nothing moves while nobody waits.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include "comm/ucx/library.h"
#include "comm/ucx/options.h"

namespace lockstep::ucx {

class Worker {
 public:
  using Lock = std::unique_lock<std::mutex>;

  explicit Worker(const UcxOptions& options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ucp_worker_h handle() const { return worker_; }
  // Where peers reach this worker.
  std::string address() const;

  Lock lock();
  // Returns once ready() holds. look() is called ten times a second, and when there is news; it may throw.
  template <typename Ready, typename Look>
  void drive(Lock& lock, const Ready& ready, const Look& look) {
    const Leaving leaving(*this);
    int idle = 0;
    uint64_t seen = news_ - 1;
    int64_t next_look = 0;
    while (!ready()) {
      advance(lock, idle);
      const int64_t now = steady_now_ns();
      if (seen == news_ && now < next_look) continue;
      seen = news_;
      next_look = now + kGlanceNs;
      look();
    }
  }
  // Waits until the system has taken all that was sent, at most so long. Nothing moves while nobody waits:
  // what a rank leaves behind when it goes on to compute would reach its peer only with the next wait.
  void flush(Lock& lock, std::chrono::milliseconds limit);
  // Moves what can be moved without waiting. With the lock held.
  void move();
  // Something has been learned of a peer, which whoever waits should consider at once. With the lock held.
  void tell_news() { ++news_; }
  // Something was started or has changed that whoever sleeps should see. With the lock held.
  void wake();

 private:
  static constexpr int64_t kGlanceNs = 100'000'000;
  // Whoever waits meanwhile may have to drive now.
  struct Leaving {
    explicit Leaving(Worker& worker) : worker(worker) {}
    ~Leaving() { worker.turn_.notify_all(); }
    Leaving(const Leaving&) = delete;
    Leaving& operator=(const Leaving&) = delete;
    Worker& worker;
  };
  void advance(Lock& lock, int& idle);
  void sleep(Lock& lock);
  void make_way(Lock& lock);

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int events_ = -1;
  std::mutex mutex_;
  std::condition_variable turn_;
  std::atomic<int> wanting_ = 0;  // threads that want the lock
  int followers_ = 0;             // threads that wait while another drives
  bool driving_ = false;
  bool sleeping_ = false;
  uint64_t news_ = 0;
};

}  // namespace lockstep::ucx
