// Watch: everybody who wants to know what a run does, told in one place: metrics.jsonl, the progress line and
// the statistics of the summary.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "observe/metrics_file.h"
#include "observe/progress.h"
#include "observe/run_statistics.h"

namespace lockstep {

struct WatchOptions {
  std::string folder;  // of the run
  int64_t total_steps = 0;
  std::optional<int64_t> resume_step;
  std::ostream* out = nullptr;  // for the progress line
  int out_descriptor = 2;
};

class Watch {
 public:
  explicit Watch(const WatchOptions& options);

  void step(const StepRecord& record);
  void evaluation(const EvalRecord& record);
  void message(std::string_view text) { progress_.message(text); }
  // All that was told is on the disk.
  void sync() { metrics_.sync(); }
  void finish() { progress_.finish(); }

  const RunStatistics& statistics() const { return statistics_; }

 private:
  MetricsFile metrics_;
  Progress progress_;
  RunStatistics statistics_;
};

}  // namespace lockstep
