// The words of the progress line: from figures to text, nothing else.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "observe/records.h"

namespace lockstep {

// Rates and shares over the last seconds: a step counts less the longer ago it was.
class RecentSteps {
 public:
  void add(const StepRecord& record);

  double samples_per_second() const { return seconds_ > 0 ? samples_ / seconds_ : 0; }
  double tokens_per_second() const { return seconds_ > 0 ? tokens_ / seconds_ : 0; }
  const StepShares& spent() const { return spent_; }

 private:
  double seconds_ = 0, samples_ = 0, tokens_ = 0;
  StepShares spent_;
};

struct ProgressState {
  StepRecord last;
  int64_t total_steps = 0;  // 0: not known
  std::optional<double> seconds_left;
  RecentSteps recent;
};

// step 120/2000  loss 0.4312  lr 8e-4  norm 1.3  12.4k samples/s  eta 1:05  compute 83% input 4% optimizer
// 13% in at most `width` columns: what matters least is left out first, and no part is cut, except that the
// step stands in any case.
std::string progress_text(const ProgressState& state, int width);

// eval at 500: loss 0.0312  auc 0.943  f1 0.71  (best so far)
std::string evaluation_text(const EvalRecord& record);

// 0.9431; "undefined" where the records leave it so.
std::string score_text(double score);

// 0:07, 12:34, 3:04:05, 2d 03:04.
std::string duration_text(double seconds);
// 950, 12.4k, 1.23M, 4.5G: three digits.
std::string rate_text(double per_second);

}  // namespace lockstep
