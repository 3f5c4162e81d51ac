#include "data/stream/reader_pool.h"

#include "base/error.h"

namespace lockstep {

ReaderPool::ReaderPool(int most) : most_(most) {
  if (most < 1 || most > 1024) throw UserError("{} readers; use 1 to 1024", most);
}

ReaderPool::~ReaderPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReaderPool::submit(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (static_cast<int>(tasks_.size()) > idle_ && static_cast<int>(threads_.size()) < most_)
      threads_.emplace_back([this] { serve(); });
  }
  wake_.notify_one();
}

void ReaderPool::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    --idle_;
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace lockstep
