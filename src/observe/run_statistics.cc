#include "observe/run_statistics.h"

#include <algorithm>

namespace lockstep {

void RunStatistics::add(const StepRecord& record) {
  times_.add(record.seconds);
  seconds_ += record.seconds;
  samples_ += record.samples;
  tokens_ += record.tokens;
  const StepShares& shares = record.shares;
  spent_.compute += shares.compute;
  spent_.exposed_comm += shares.exposed_comm;
  spent_.input_wait += shares.input_wait;
  spent_.optimizer += shares.optimizer;
  spent_.other += shares.other + std::max(0.0, record.seconds - shares.total());
}

double RunStatistics::samples_per_second() const {
  return seconds_ > 0 ? static_cast<double>(samples_) / seconds_ : 0;
}

double RunStatistics::tokens_per_second() const {
  return seconds_ > 0 ? static_cast<double>(tokens_) / seconds_ : 0;
}

StepTimeMs RunStatistics::step_time_ms() const {
  return {1e3 * times_.percentile(0.50), 1e3 * times_.percentile(0.95)};
}

StepShares RunStatistics::breakdown() const {
  const double total = spent_.total();
  if (!(total > 0)) return {};
  return {spent_.compute / total, spent_.exposed_comm / total, spent_.input_wait / total,
          spent_.optimizer / total, spent_.other / total};
}

void RunStatistics::fill(RunSummary& summary) const {
  summary.samples_per_second = samples_per_second();
  summary.tokens_per_second = tokens_per_second();
  summary.step_time_ms = step_time_ms();
  summary.breakdown = breakdown();
}

}  // namespace lockstep
