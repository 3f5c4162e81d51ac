// InputReport: where the time of the input went, and what to do about it.
//
// Every second that a step waits for its batch is put down to one cause: a stage of making it (fetch, decode,
// transform, assemble), or reorder, when all later batches were ready and only this one was not.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/pipeline/stage_counters.h"

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
  bool decodes_again = false;    // memory does not hold what the order mixes
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

}  // namespace lockstep
