// SideWork: what takes long before a first step and needs no place in its order (a kernel to compile, a plan
// for a library to build), done by threads of its own while the start goes on.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep::cuda {

class SideWork {
 public:
  explicit SideWork(int most_threads) : most_threads_(most_threads) {}
  ~SideWork() { stop(); }
  SideWork(const SideWork&) = delete;
  SideWork& operator=(const SideWork&) = delete;

  // Waits for what has begun; the rest is left out.
  void stop();
  // The future has what the body returns or throws.
  template <typename Body>
  auto start(Body body) {
    using Result = decltype(body());
    const auto task = std::make_shared<std::packaged_task<Result()>>(std::move(body));
    std::shared_future<Result> result = task->get_future().share();
    put([task] { (*task)(); });
    return result;
  }

 private:
  void put(std::function<void()> task);
  void serve();

  int most_threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  int idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::cuda
