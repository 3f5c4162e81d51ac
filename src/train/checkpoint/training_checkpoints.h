// TrainingCheckpoints: the checkpoints of a run: what of its training goes in, and how that comes back.
//
// The tensors and the optimizer's count of steps are a TrainStep's; what the run knows beside is a JSON
// object of the run's own, to which only "steps_applied" is added.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "train/checkpoint/background_writer.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/checkpoint/owned_parts.h"
#include "train/step/train_step.h"

namespace lockstep {

// Bytes in host memory through which tensors go to the disk and back: all that checkpoints take. Small enough
// to stay in a cache between the copy, the hashes and the write.
inline constexpr int64_t kCheckpointStaging = 1 << 20;

// A checkpoint of a run's folder, to go on from. UserError of one that is damaged also says what to remove,
// and which other the run could go on from.
CheckpointReader open_checkpoint(const std::string& path);
// UserError unless it was written by a run of this identity.
void require_identity(const CheckpointReader& checkpoint, const Identity& own);

// As the last one of a run may: evaluated and exported, but nobody makes another step from it.
bool holds_weights_alone(const CheckpointReader& checkpoint);
[[noreturn]] void refuse_to_go_on(const std::string& checkpoint);

class TrainingCheckpoints {
 public:
  struct Restored {  // NOLINT(bugprone-exception-escape): the JSON library asserts in a move that is noexcept
    std::string path;
    nlohmann::json state;
    bool weights_alone = false;
  };

  // `texts` are files that go into every checkpoint: name, content.
  TrainingCheckpoints(const std::string& folder, int64_t keep, Identity identity,
                      std::vector<std::pair<std::string, std::string>> texts);
  // Before anything is saved or restored, where tensors are split. The thread that writes checkpoints reads.
  void split_with(SplitTensors split) { split_ = std::move(split); }
  // Before anything is saved or restored: tensors of the model that checkpoints do not hold, since they never
  // change and lie elsewhere. Whoever restores has put them into the state.
  void leave_out(std::set<std::string> names) { left_out_ = std::move(names); }
  // All workers write what they own into the files, when this is called on the thread that writes
  // checkpoints; it may use the memory meanwhile.
  using WriteTogether = std::function<std::vector<PartSums>(const std::string& folder, bool weights_alone,
                                                            std::span<std::byte> staging)>;
  void write_together(int workers, WriteTogether write) {
    workers_ = workers;
    write_together_ = std::move(write);
  }
  const std::set<std::string>& left_out() const { return left_out_; }
  // The checkpoint of this step stays until another is named, however many come after it.
  void retain(int64_t step) { retained_ = step; }

  // Returns at once: tensors are read and the disk is written meanwhile. Whatever changes the state waits
  // until it has been read (StateGate). With the weights alone nobody can go on from it.
  void save(TrainStep& train, int64_t step, nlohmann::json state, bool best, bool weights_alone = false);
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
  std::optional<Restored> restore(TrainStep& train);
  // Puts the checkpoint of that step back, and removes those after it.
  Restored rewind(TrainStep& train, int64_t step);
  // Removes all checkpoints, to start over.
  void discard_all();
  // Marks the last checkpoint as the best where it is, and removes those that are too many: what a killed run
  // may have left undone, and what follows from an evaluation that is made behind a checkpoint.
  void complete(int64_t step, bool best);

 private:
  Restored load(TrainStep& train, const std::string& path);

  std::string folder_;
  Identity identity_;
  std::vector<std::pair<std::string, std::string>> texts_;
  SplitTensors split_;
  std::set<std::string> left_out_;
  int workers_ = 1;
  WriteTogether write_together_;  // none: this process writes alone
  std::vector<std::byte> staging_;
  std::unique_ptr<BackgroundCheckpointWriter> writer_;  // whose thread uses the staging memory
  std::optional<int64_t> last_step_, retained_;
};

}  // namespace lockstep
