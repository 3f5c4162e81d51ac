#include "run/errands.h"

#include <utility>

#include "base/error.h"

namespace lockstep {

Errands::Ask Errands::asker() const {
  return [shared = shared_](const std::function<void()>& errand) {
    std::unique_lock lock(shared->mutex);
    shared->errand = &errand;
    shared->changed.notify_all();
    shared->changed.wait(lock, [&] { return shared->errand == nullptr || shared->closed; });
    if (shared->error) std::rethrow_exception(std::exchange(shared->error, nullptr));
    if (shared->closed) throw CommError("the other workers were not there to be asked for their state");
  };
}

void Errands::answer(std::chrono::milliseconds time) {
  std::unique_lock lock(shared_->mutex);
  if (!shared_->changed.wait_for(lock, time, [this] { return shared_->errand != nullptr; })) return;
  try {
    (*shared_->errand)();
  } catch (...) {
    shared_->error = std::current_exception();
  }
  const std::exception_ptr error = shared_->error;
  shared_->errand = nullptr;
  lock.unlock();
  shared_->changed.notify_all();
  if (error) std::rethrow_exception(error);
}

void Errands::close() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->closed = true;
  }
  shared_->changed.notify_all();
}

}  // namespace lockstep
