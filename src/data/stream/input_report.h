// InputReport: where the time of the input went, and what to do about it.
//
// Every second that a step waits for its batch is put down to one cause: a stage of making it (fetch, decode,
// transform, assemble), or reorder, when all later batches were ready and only this one was not.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "data/shards/stage_counters.h"

namespace lockstep {

// The stages, in their order, and reorder.
inline constexpr std::array<std::string_view, 5> kWaitNames{"fetch", "decode", "transform", "assemble",
                                                            "reorder"};
inline constexpr size_t kReorderWait = 4;

struct InputReport {
  int64_t batches = 0;                             // handed over
  double seconds = 0;                              // from the first batch on
  std::array<double, kWaitNames.size()> waited{};  // seconds that the caller waited, by cause
  double consumer = 0;           // seconds that readers had nothing to do because all was ready
  int64_t readers = 0;           // at most at once
  int64_t ahead = 0;             // batches made ahead, at most
  int64_t peak_bytes = 0;        // that the source's blocks and all batches took together
  int64_t budget = 0;            // that they may take
  bool could_keep_rows = false;  // of a table, and does not
  StageTimes stages;             // the work itself, over all readers

  // What happened since an earlier report of the same stream; limits and peaks are those of this one.
  InputReport operator-(const InputReport& earlier) const;
  double waited_in_all() const;
  // The name of the cause that most of the waiting is due to.
  std::string_view slowest() const;
  // One sentence: what is slow, and what to change. "input keeps up" where the step waited for less than a
  // hundredth of the time.
  std::string sentence() const;
};

// InputWaits: what a caller waited for, put down to causes, and how long readers had nothing to do; all told
// by the stream, one call at a time.
class InputWaits {
 public:
  // The caller asks for a batch.
  void asked();
  // It had to wait since, in which the stages went on from `before` to `after`.
  void waited(const StageTimes& before, const StageTimes& after);
  // It goes off with its batch.
  void handed_over();
  // Everything is ready but what the caller waits for.
  void only_this_is_missing();
  // Readers have nothing to do, or something again.
  void readers_rest();
  void readers_work();

  // Whether the caller lately did little but wait.
  bool caller_only_waits() const { return with_batches_ < for_batches_; }
  // What was told; the rest of a report is the stream's.
  InputReport report() const;

 private:
  using Clock = std::chrono::steady_clock;

  InputReport report_;
  Clock::time_point started_, asked_;
  std::optional<Clock::time_point> handed_over_, behind_since_, rest_since_;
  // Seconds that the caller lately spent with its batches, and waiting for them.
  double with_batches_ = 0, for_batches_ = 0;
};

}  // namespace lockstep
