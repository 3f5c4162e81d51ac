// ReaderPool: the threads that make batches ahead of time, one set for all streams of a worker. A thread is
// started when there is work that no other has time for, at most as many as allowed, and then stays.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep {

class ReaderPool {
 public:
  explicit ReaderPool(int most);
  ~ReaderPool();  // what was submitted is finished first
  ReaderPool(const ReaderPool&) = delete;
  ReaderPool& operator=(const ReaderPool&) = delete;

  int most() const { return most_; }
  // Runs `task`, which must not throw, on one of the threads.
  void submit(std::function<void()> task);

 private:
  void serve();

  int most_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  int idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep
