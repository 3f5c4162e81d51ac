// TrainRun: a job from its first step to its last, as one worker or one of several (run/workers.h).
//
// A step: accumulate the gradients of all microbatches, let the guard decide, update. Then, where they are
// due, evaluation and checkpoint. Everything that decides about bits (data position, learning rate, guard) is
// a function of the job, the step and the state in the checkpoint; so a run that was killed goes on from its
// last checkpoint to the same result.
#pragma once
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>

#include "prepare/job_parts.h"
#include "prepare/job_plan.h"
#include "prepare/job_reading.h"
#include "run/checkpoint_writers.h"
#include "run/device_watch.h"
#include "run/errands.h"
#include "run/feeder.h"
#include "run/pace.h"
#include "run/run_folder.h"
#include "run/run_state.h"
#include "run/signals.h"
#include "run/split_state.h"
#include "run/step_engine.h"
#include "run/watch.h"
#include "run/workers.h"
#include "train/checkpoint/run_lock.h"
#include "train/checkpoint/training_checkpoints.h"
#include "train/evaluate/held_out.h"
#include "train/guard/examine.h"
#include "train/guard/guard.h"

namespace lockstep {

struct RunOptions {
  bool fresh = false;           // start over, whatever the output folder holds
  std::string from = {};        // the checkpoint to go on from; empty: the newest
  JobSpec job = {};             // the effective job as it was asked for, to be kept with the run
  std::ostream* out = nullptr;  // for the progress line and messages
  int out_descriptor = 2;       // where that goes, to see whether it is a terminal
  bool leads = true;            // as worker 0; only it needs the records to evaluate on
  HostShare host = {};          // which of its host's workers this is, and its part of the host
  // Instead of the device that the job names.
  std::function<std::unique_ptr<Backend>()> device = {};
  // Meets the other workers, where the job has several.
  std::function<JoinedWorkers(const JobParts& parts)> join = {};
  // Who makes the steps, where that is not this run itself.
  std::function<std::unique_ptr<StepEngine>(const JobParts& parts, TrainStep& train)> engine = {};
};

class TrainRun {
 public:
  // Reads the data and takes the memory; the output folder is not touched before run().
  TrainRun(JobSpec spec, RunOptions options);

  // Until the last step, an early stop, a signal, a step that the guard ends the run for, or a UserError of
  // a run that has begun (a full disk), which is in the summary. Writes summary.json in any case, also before
  // it throws. Of several workers, the first one writes. A run that is finished already is left as it is.
  RunSummary run();

 private:
  // Whether the leader asks others for weights to hash.
  bool asks_for_hash() const {
    return train_.holders().is_split() || (train_.units().empty() && train_.ownership().splits_params());
  }
  // The hash of the weights, where all workers have to make it together: while all are there.
  void hash_together();
  void gather();
  void still_working(const std::string& what);
  int64_t last_step() const { return engine_ ? engine_->last_step(parts_.steps()) : parts_.steps(); }
  // What the leader has found in the output folder.
  enum class Found : uint8_t { kNothing, kCheckpoint, kFinished };
  // Where workers own pieces of the state: who reads and writes them for the leader.
  void share_split_state();
  // Finds out who writes checkpoints.
  void settle_writers();
  // Whether there is anything to do.
  bool begin();
  Found begin_as_leader();
  // Puts back the checkpoint to go on from; its step.
  std::optional<int64_t> restore();
  void open_folder(const std::optional<int64_t>& resumed, const std::vector<NamedText>& files);
  void adopt(const RunState& restored);
  enum class Ending : uint8_t { kNone, kEarly, kTerminated, kInterrupted, kHungUp, kUser1, kUser2 };
  // What a signal asks for; of the leader, whose signals count.
  Ending asked_by_signal() const;
  void say(const std::string& text);
  void loop();
  void one_step();
  // Runs a step that the guard did not let pass again, and says what was found.
  void examine(const Decision& decision, const StepRecord& record);
  // Does what the guard decided, and says in the record what that was.
  void act(const Decision& decision, StepRecord& record);
  void rewind();
  int64_t rewind_target() const;
  void retain_rewind_target();
  void finish_step(bool examined);
  void require_same_weights(std::string_view what);
  void hash_weights();
  // Lets the leader decide, on all workers.
  void end_if_agreed();
  // With a checkpoint, which the others wait for.
  void end_with(Ending ending);
  // Whether the step that was made last is one to evaluate after, and was not evaluated.
  bool is_evaluation_left() const;
  void evaluate();
  // Of a step whose evaluation has failed: what was trained is not lost with it. In words, how that went.
  std::string save_before_failing();
  // What a checkpoint that is written now holds.
  SavedContent saved_content() const;
  void save(bool best);
  void wait_for_disk();
  // For work of the leader that the others wait for in agree().
  auto working_on(std::string what) {
    return [this, what = std::move(what)] { still_working(what); };
  }
  void end(std::string status, std::string reason, int64_t exit_code);
  RunSummary summarise();
  std::string last_hash();
  // From where a run that fails now goes on.
  std::string kept_so_far() const;
  // Where the time until the end of the first step went.
  void fill_start(RunSummary& summary) const;
  void tell_start() const;
  // False where the workers only measure what their communication costs.
  bool exchanges() const { return parts_.options.reduce.exchange; }
  int64_t tokens_per_step() const { return parts_.model.tokens * parts_.resolved.microbatches; }
  int64_t planned_bytes() const {
    return train_.planned_bytes() + held_out_.planned_bytes() + kProgramBytes +
           (workers_.leads() || writers_ ? kCheckpointStaging : 0);
  }

  // Of the start, on this thread.
  PhaseTimes start_;
  double begun_seconds_ = 0;             // after the process
  std::vector<PhaseTime> beside_start_;  // of the device, until the first step was done
  RunOptions options_;
  SignalWatch signals_;  // before all that has threads
  std::unique_ptr<Backend> backend_;
  JobParts parts_;
  JoinedWorkers joined_;
  Workers workers_;
  std::optional<CompressionSummary> compression_;  // settled before the step is made
  std::vector<PipelineStageTimes> stages_;         // of a run that has come to its end
  TrainStep train_;
  std::unique_ptr<StepEngine> engine_;  // who makes the steps, where it is not train_
  JobReading reading_;
  Feeder feeder_;
  Pace pace_;
  HeldOut held_out_;
  Guard guard_;
  Examiner examiner_;
  std::optional<RunLock> output_lock_;                // where the checkpoints lie in another folder
  std::unique_ptr<SplitState> split_;                 // where workers own pieces of the state
  std::unique_ptr<TrainingCheckpoints> checkpoints_;  // of the leader
  std::unique_ptr<UnitReader> evaluated_units_;       // where the leader does not have all that it evaluates
  std::unique_ptr<CheckpointWriters> writers_;        // where others might write checkpoints, too
  std::string checkpoint_writers_;                    // in words; of the leader, where there are others
  Errands errands_;                                   // of the thread that writes checkpoints
  std::unique_ptr<Watch> watch_;                      // of the leader
  std::unique_ptr<DeviceWatch> device_watch_;         // of the leader, from the first step on

  RunState state_;
  Ending requested_ = Ending::kNone;      // by the leader, in the step at hand
  bool saved_before_evaluation_ = false;  // the last checkpoint is of an evaluated step, and does not say so
  std::string weights_sha256_;            // of the end, where the model is split; of a mesh, the leader's
  double last_loss_ = 0;                  // of the last step that was applied
  double first_step_seconds_ = 0;
  int64_t hosts_ = 1;                   // that exchange gradients over a network
  RunSummary summary_;                  // its status is empty while the run goes on
  std::optional<RunSummary> finished_;  // of the leader: of the run that it found finished
};

}  // namespace lockstep
