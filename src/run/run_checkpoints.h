// RunCheckpoints: between a run and its checkpoints: what of the run goes in, and how it comes back.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/run_state.h"
#include "train/checkpoint/background_writer.h"
#include "train/train_step.h"

namespace lockstep {

class RunCheckpoints {
 public:
  // `texts` are files that go into every checkpoint: name, content.
  RunCheckpoints(const std::string& folder, int64_t keep, Identity identity,
                 std::vector<std::pair<std::string, std::string>> texts);
  // The checkpoint of this step stays until another is named, however many come after it.
  void retain(int64_t step) { retained_ = step; }

  // Returns when the tensors are copied; the disk is written meanwhile. See BackgroundCheckpointWriter.
  void save(TrainStep& train, const RunState& state, bool best);
  // Waits until all that was saved is on the disk.
  void finish();
  // Waits at most so long; whether the next call has nothing to wait for.
  bool idle_within(std::chrono::milliseconds time) { return writer_->idle_within(time); }
  // The step of the last save, by this object or a run before it; nothing: there is none.
  std::optional<int64_t> last_step() const { return last_step_; }

  // Puts the latest checkpoint back. Nothing if there is none. Throws UserError for one that is damaged or of
  // another identity.
  std::optional<RunState> restore(TrainStep& train);
  // Puts the checkpoint of that step back, and forgets those after it.
  RunState rewind(TrainStep& train, int64_t step);
  // Removes all checkpoints, to start over.
  void discard_all();
  // Does what a killed run may have left undone behind its last checkpoint: to mark it as the best, and to
  // remove those that are too many.
  void complete(int64_t step, bool best);

 private:
  RunState load(TrainStep& train, const std::string& path) const;
  void check_identity(const std::string& path, const Identity& found) const;

  std::string folder_;
  Identity identity_;
  std::vector<std::pair<std::string, std::string>> texts_;
  std::unique_ptr<BackgroundCheckpointWriter> writer_;
  std::optional<int64_t> last_step_, retained_;
};

}  // namespace lockstep
