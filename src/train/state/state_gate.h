// StateGate: lets a thread read the training state while training goes on as long as it only reads, too.
//
// A checkpoint is written from the tensors themselves, piece by piece; a copy of all of them would be a third
// of a run's memory. Forward and backward read parameters, so they run meanwhile. Whatever changes the state
// waits until the reader is through: TrainState::bind gives every executable that updates a buffer of the
// state this gate.
#pragma once
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace lockstep {

class StateGate {
 public:
  // While any copy of it exists the state stays as it is. May end on any thread, and after the gate.
  using Hold = std::shared_ptr<const void>;

  Hold hold() {
    {
      const std::lock_guard lock(shared_->mutex);
      ++shared_->holds;
    }
    return {nullptr, [shared = shared_](const void*) {
              {
                const std::lock_guard lock(shared->mutex);
                --shared->holds;
              }
              shared->changed.notify_all();
            }};
  }

  // Until nobody holds the state.
  void wait() {
    std::unique_lock lock(shared_->mutex);
    if (shared_->holds == 0) return;
    const auto start = std::chrono::steady_clock::now();
    ++shared_->waiting;
    shared_->changed.notify_all();
    shared_->changed.wait(lock, [this] { return shared_->holds == 0; });
    --shared_->waiting;
    shared_->waited += std::chrono::steady_clock::now() - start;
  }

  // Spent in wait() so far.
  double waited_seconds() const {
    const std::lock_guard lock(shared_->mutex);
    return std::chrono::duration<double>(shared_->waited).count();
  }
  // Whether somebody is in wait().
  bool is_awaited() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->waiting > 0;
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    int holds = 0;
    int waiting = 0;
    std::chrono::steady_clock::duration waited{};
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace lockstep
