// Records as TensorBoard scalars, in <run>/tensorboard: `tensorboard --logdir RUN` shows them. The tags are
// those that other trainers write, so that runs can be laid over one another; docs/observability.md lists
// them.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "observe/event_file.h"
#include "observe/records.h"

namespace lockstep {

struct TensorBoardOptions {
  // Steps after this one, which an earlier start may have written, are dropped by TensorBoard.
  std::optional<int64_t> resume_step;
  int64_t tokens_seen = 0;        // up to the resumed step
  std::function<double()> clock;  // seconds since 1970; the system's if empty
};

class TensorBoardWriter {
 public:
  // One new file per start. Throws UserError, as do all of these.
  explicit TensorBoardWriter(const std::string& folder, TensorBoardOptions options = {});

  void add(const StepRecord& record);
  void add(const EvalRecord& record);
  // The run goes back: what was written of steps after this one is dropped by TensorBoard.
  void rewind(int64_t step, int64_t tokens_seen);
  // The figures of the whole run, at its last step.
  void finish(const RunSummary& summary, double seconds);

 private:
  std::function<double()> clock_;
  int64_t tokens_seen_;
  EventFile file_;
};

// The scalars that stand for a record. Those of parts that have no value are left out.
std::vector<Scalar> scalars_of(const StepRecord& record, int64_t tokens_seen);
std::vector<Scalar> scalars_of(const EvalRecord& record);
std::vector<Scalar> scalars_of(const RunSummary& summary, double seconds);

}  // namespace lockstep
