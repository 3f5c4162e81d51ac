// CommProfile: when each bucket of gradients was handed over, how long it travelled, and how long this worker
// waited for it: what the account of exposed communication is made of (observe/comm_account.h).
//
// Filled in by LeafSums. A bucket's transfer is timed by the thread that runs it, which is done with it
// before anybody who waits for the bucket goes on.
#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

namespace lockstep {

class CommProfile {
 public:
  // Seconds, added up over steps.
  struct Bucket {
    double ahead = 0;  // from its hand-over to that of the last bucket, when nothing is left to compute
    double transfer =
        0;               // from the first byte of this worker's to its root, coding and slower peers included
    double exposed = 0;  // that this worker waited for it with nothing else to do
  };

  explicit CommProfile(int64_t buckets = 0)
      : sums_(static_cast<size_t>(buckets)), current_(static_cast<size_t>(buckets)) {}

  void handed_over(int64_t bucket) { current_[at(bucket)].handed_over = Clock::now(); }
  void began(int64_t bucket) { current_[at(bucket)].began = Clock::now(); }
  void ended(int64_t bucket) { current_[at(bucket)].ended = Clock::now(); }
  void waited(int64_t bucket, double seconds) { current_[at(bucket)].waited += seconds; }
  // So long a collective took that carried almost nothing.
  void small(double seconds) { small_ += seconds; }
  // All buckets of a step have come.
  void end_step() {
    if (current_.empty()) return;
    ++steps_;
    for (size_t i = 0; i < sums_.size(); ++i) {
      Times& times = current_[i];
      sums_[i].ahead += seconds(current_.back().handed_over - times.handed_over);
      sums_[i].transfer += seconds(times.ended - times.began);
      sums_[i].exposed += times.waited;
      times = {};
    }
  }
  // Forgets the steps so far.
  void restart() {
    steps_ = 0;
    small_ = 0;
    for (Bucket& sum : sums_) sum = {};
  }

  int64_t steps() const { return steps_; }
  double small() const { return small_; }  // one for each step
  const std::vector<Bucket>& buckets() const { return sums_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Times {
    Clock::time_point handed_over, began, ended;
    double waited = 0;
  };
  static size_t at(int64_t bucket) { return static_cast<size_t>(bucket); }
  static double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

  std::vector<Bucket> sums_;
  std::vector<Times> current_;
  int64_t steps_ = 0;
  double small_ = 0;
};

}  // namespace lockstep
