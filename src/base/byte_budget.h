// ByteBudget: the bytes that the stages of one input hold together, and the most that they ever held. Stages
// count what they take and give back; those that can do with less look at the rest before they take more.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>

namespace lockstep {

class ByteBudget {
 public:
  explicit ByteBudget(int64_t limit) : limit_(limit) {}

  int64_t limit() const { return limit_; }
  int64_t used() const { return used_; }
  int64_t peak() const { return peak_; }

  // Called before the limit would be passed, with the bytes that are about to be taken, by whoever takes
  // them: lets go what can be had again.
  void on_shortage(std::function<void(int64_t bytes)> let_go) { let_go_ = std::move(let_go); }

  void take(int64_t bytes) {
    if (let_go_ && used_ + bytes > limit_) let_go_(bytes);
    count(bytes);
  }
  void give(int64_t bytes) { count(-bytes); }
  // Takes or gives without asking others for room.
  void count(int64_t bytes) {
    const int64_t now = used_ += bytes;
    for (int64_t peak = peak_; now > peak && !peak_.compare_exchange_weak(peak, now);) {
    }
  }

 private:
  int64_t limit_;
  std::function<void(int64_t)> let_go_;
  std::atomic<int64_t> used_ = 0, peak_ = 0;
};

}  // namespace lockstep
