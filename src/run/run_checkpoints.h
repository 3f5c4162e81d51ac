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

// Bytes in host memory through which tensors go to the disk and back: all that checkpoints take. Small enough
// to stay in a cache between the copy, the hashes and the write.
inline constexpr int64_t kCheckpointStaging = 1 << 20;

class RunCheckpoints {
 public:
  // `texts` are files that go into every checkpoint: name, content.
  RunCheckpoints(const std::string& folder, int64_t keep, Identity identity,
                 std::vector<std::pair<std::string, std::string>> texts);
  // The checkpoint of this step stays until another is named, however many come after it.
  void retain(int64_t step) { retained_ = step; }

  // Returns at once: tensors are read and the disk is written meanwhile. Whatever changes the state waits
  // until it has been read (StateGate).
  void save(TrainStep& train, const RunState& state, bool best);
  // Waits at most so long; whether the state of the last save has been read.
  bool read_within(std::chrono::milliseconds time) { return writer_->read_within(time); }
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
  RunState load(TrainStep& train, const std::string& path);
  void check_identity(const std::string& path, const Identity& found) const;

  std::string folder_;
  Identity identity_;
  std::vector<std::pair<std::string, std::string>> texts_;
  std::vector<std::byte> staging_;
  std::unique_ptr<BackgroundCheckpointWriter> writer_;  // whose thread uses the staging memory
  std::optional<int64_t> last_step_, retained_;
};

}  // namespace lockstep
