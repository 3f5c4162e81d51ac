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

  // Passes the limit only where nothing can be let go.
  void take(int64_t bytes) {
    for (int i = 0; i < kTries; ++i) {
      if (try_take(bytes)) return;
      if (!let_go_) break;
      let_go_(bytes);
    }
    count(bytes);
  }
  // False, and nothing is taken, where the limit would be passed.
  bool try_take(int64_t bytes) {
    for (int64_t now = used_; now + bytes <= limit_;)
      if (used_.compare_exchange_weak(now, now + bytes)) {
        note_peak(now + bytes);
        return true;
      }
    return false;
  }
  void give(int64_t bytes) { count(-bytes); }
  // Takes or gives without asking others for room.
  void count(int64_t bytes) { note_peak(used_ += bytes); }

 private:
  // What one let go, another may have taken.
  static constexpr int kTries = 4;

  void note_peak(int64_t now) {
    for (int64_t peak = peak_; now > peak && !peak_.compare_exchange_weak(peak, now);) {
    }
  }

  int64_t limit_;
  std::function<void(int64_t)> let_go_;
  std::atomic<int64_t> used_ = 0, peak_ = 0;
};

}  // namespace lockstep
