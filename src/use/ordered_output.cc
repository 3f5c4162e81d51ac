#include "use/ordered_output.h"

namespace lockstep {

void OrderedOutput::put(int64_t number, std::string bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || number < next_ + most_waiting_; });
  if (stopped_) return;
  waiting_.emplace(number, std::move(bytes));
  if (!writing_) write_ready(lock);
}

void OrderedOutput::make_in_turn(int64_t number, const std::function<void(std::string& bytes)>& make) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || (number == next_ && !writing_); });
  if (stopped_) return;
  writing_ = true;
  lock.unlock();
  std::string bytes;
  make(bytes);
  lock.lock();
  writing_ = false;
  waiting_.emplace(number, std::move(bytes));
  write_ready(lock);
}

// Who finds the next piece there writes it, and all that follow it.
void OrderedOutput::write_ready(std::unique_lock<std::mutex>& lock) {
  writing_ = true;
  while (!stopped_ && !waiting_.empty() && waiting_.begin()->first == next_) {
    const std::string bytes = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    lock.unlock();
    write_(bytes);
    lock.lock();
    ++next_;
    changed_.notify_all();
  }
  writing_ = false;
  changed_.notify_all();
}

void OrderedOutput::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace lockstep
