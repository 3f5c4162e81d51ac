// Watch: everybody who wants to know what a run does, told in one place: metrics.jsonl, TensorBoard, the
// progress line and the statistics of the summary.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "observe/metrics_file.h"
#include "observe/progress.h"
#include "observe/run_statistics.h"
#include "observe/tensorboard.h"

namespace lockstep {

struct WatchOptions {
  std::string folder;  // of the run
  int64_t total_steps = 0;
  std::optional<int64_t> resume_step;
  bool evaluates_again = false;  // after that step
  int64_t tokens_per_step = 0;
  std::ostream* out = nullptr;  // for the progress line
  int out_descriptor = 2;
};

class Watch {
 public:
  explicit Watch(const WatchOptions& options);

  void step(const StepRecord& record);
  void evaluation(const EvalRecord& record);
  // The run goes on from this step, which came before.
  void rewind(int64_t step);
  void message(std::string_view text) { progress_.message(text); }
  // All that was told is on the disk.
  void sync() { metrics_.sync(); }
  void finish(const RunSummary& summary);

  const RunStatistics& statistics() const { return statistics_; }

 private:
  int64_t tokens_per_step_;
  MetricsFile metrics_;
  TensorBoardWriter tensorboard_;
  Progress progress_;
  RunStatistics statistics_;
};

}  // namespace lockstep
