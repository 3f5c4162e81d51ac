// <run>/metrics.jsonl: one line per step and per evaluation, in the order in which they happened.
//
// Every line reaches the system before add() returns, so a killed process loses none of them; it may leave
// half a line, and lines of steps after its last checkpoint. A run that resumes at step S cuts the file
// behind the last line whose step is at most S: one truncation at the end of a line, which happens or does
// not. Lines before that are never touched; where the run rewound, steps come twice, and surviving_steps()
// (observe/metrics_reader.h) gives those that count.
//
// An evaluation after step S is part of step S. Where the checkpoint of step S was written before it, a run
// that resumes there makes it again, and the line of the first one is cut off too.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "observe/records.h"

namespace lockstep {

class MetricsFile {
 public:
  // A new file, or, resuming, the lines up to that step of the one that is there; without those of its
  // evaluations where these are made again. Throws UserError.
  explicit MetricsFile(std::string path, std::optional<int64_t> resume_step = std::nullopt,
                       bool evaluates_again = false);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void add(const StepRecord& record);
  void add(const EvalRecord& record);
  // Waits until all lines are on the disk: before a checkpoint, whose steps must not be lost with the power.
  void sync();

 private:
  void append(std::string_view line);

  std::string path_;
  int file_ = -1;
};

}  // namespace lockstep
