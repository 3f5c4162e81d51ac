#include "backend/cuda/side_work.h"

#include <algorithm>

namespace lockstep::cuda {

void SideWork::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    tasks_.clear();
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void SideWork::put(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  const auto waiting = static_cast<int>(tasks_.size());
  if (idle_ < waiting && static_cast<int>(threads_.size()) < std::max(1, most_threads_))
    threads_.emplace_back([this] { serve(); });
  wake_.notify_one();
}

void SideWork::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    --idle_;
    if (stopping_) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace lockstep::cuda
