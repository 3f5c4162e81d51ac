// RunStatistics: from the steps of one start to the figures of a summary, in constant memory.
#pragma once
#include <cstdint>

#include "observe/records.h"
#include "observe/time_histogram.h"

namespace lockstep {

class RunStatistics {
 public:
  // Every step that was computed, also one that was skipped or rewound: its time was spent.
  void add(const StepRecord& record);

  int64_t steps() const { return times_.count(); }
  double step_seconds() const { return seconds_; }
  double samples_per_second() const;
  double tokens_per_second() const;
  StepTimeMs step_time_ms() const;
  // Shares that sum to 1; all 0 while no time was spent. What a step's parts leave of its seconds is `other`.
  StepShares breakdown() const;

  // Sets the four above.
  void fill(RunSummary& summary) const;

 private:
  TimeHistogram times_;
  double seconds_ = 0;
  int64_t samples_ = 0, tokens_ = 0;
  StepShares spent_;
};

}  // namespace lockstep
