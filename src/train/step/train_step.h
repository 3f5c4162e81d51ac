// TrainStep: one model made ready to train on one backend.
//
// A step has M microbatches of one shape and V leaves. Leaf v accumulates its M/V microbatches in index
// order; leaves are summed by the binary tree over their indices (train/sums/leaf_sums.h), across workers
// where there are several; then every worker makes the same update.
//
// All work is put on the compute stream; the host waits for it once per step, when it reads the loss, the
// count and the norm, and for other workers.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "train/pipeline/pipeline_runner.h"
#include "train/state/staged_messages.h"
#include "train/state/train_state.h"
#include "train/state/unit_reader.h"
#include "train/step/device_ways.h"
#include "train/step/staging_ring.h"
#include "train/step/step_inputs.h"
#include "train/step/train_plans.h"
#include "train/sums/leaf_sums.h"
#include "train/sums/owned_gathers.h"
#include "train/sums/round_sums.h"
#include "train/sums/unit_gathers.h"

namespace lockstep {

struct StepResult {
  double loss = 0;  // mean over what the loss counts
  int64_t count = 0;
  double grad_norm = 0;
  int64_t request = 0;  // of the worker that had one
};

// Asked once a step, when this worker's own sums are complete; the answer travels with the counts, so that it
// costs no message of its own. 0 is none; one worker at most should have any.
using Request = std::function<int64_t()>;

// Calls set_input for the microbatch it is given.
using Loader = std::function<void(int64_t microbatch)>;

// What to plan for a worker of these groups: with its place among them, and on the host where the backend can
// share memory.
TrainOptions options_in(const MeshGroups& groups, const Backend& backend, TrainOptions options);

class TrainStep {
 public:
  // With the parameters that the model begins with.
  // The data group's split says which leaves are this worker's; without one all of them are. Plans must be of
  // options_in the groups.
  TrainStep(const Model& model, Backend& backend, const TrainOptions& options, const MeshGroups& groups = {});
  TrainStep(TrainPlans plans, const Model& model, Backend& backend, const TrainOptions& options,
            const MeshGroups& groups = {});

  // Copies one microbatch's data into the buffer of a graph input.
  void set_input(std::string_view name, const void* host, int64_t bytes) { inputs_->set(name, host, bytes); }
  bool has_input(std::string_view name) const { return inputs_->has(name); }
  std::vector<std::string> input_names() const { return inputs_->names(); }
  // Which microbatches are this worker's.
  const SumTree& tree() const { return rounds_ ? rounds_->tree() : sums_->tree(); }

  // Forward and backward of every microbatch of this worker's leaves, and the sum over all workers:
  // gradients, their norm, the loss. With one microbatch the loader
  // may be left out. `step` keys what is drawn at random; 0: the one after those applied.
  StepResult accumulate(const Loader& load = {}, int64_t step = 0, const Request& request = {});
  // One step of the optimizer with the gradients at hand. A step may be left out: nothing happened then.
  void apply(double lr);
  // Both, for callers that always apply.
  StepResult run(double lr, const Loader& load = {});
  int64_t steps_applied() const { return steps_applied_; }
  // Brings every row of every table up to date. Reading parameters does it too.
  void catch_up_all();
  // backward(), bound and loaded to run one microbatch: for those who look inside. The gradients at hand are
  // lost. Parameters that are split are read as split_with says.
  Executable& prepare_microbatch(int64_t microbatch, const Loader& load, int64_t step = 0);

  // The state, every row up to date.
  const TrainState& state();
  // As it lies, for another thread that reads it while a step is summed up: nothing is caught up or
  // forgotten.
  const TrainState& state_as_it_lies() const { return state_; }
  const ModelHolders& holders() const { return holders_; }
  // Says that the state was overwritten with what it was after that many applied steps.
  void restored(int64_t steps_applied);

  // Where workers own pieces of tensors: how the one that leads reads and writes them, while the others do
  // what it asks for.
  void split_with(SplitTensors split);
  // For the leader: some bytes of a tensor of the state, whole or split, from `first` on.
  void read_state(const StateTensor& tensor, int64_t first, std::span<std::byte> into) const;
  void write_state(const StateTensor& tensor, int64_t first, std::span<const std::byte> from);

  // SHA-256 over all parameters and running statistics that this worker or, where these are owned in pieces,
  // its data group holds (docs/design.md). Where parameters are split, all
  // workers have to call this together, and so for param().
  std::string weights_sha256();
  std::vector<float> param(std::string_view name);
  void set_param(std::string_view name, const std::vector<float>& values);
  // The gradient of the last step, a sum over the microbatch; of a table with row gradients, made dense.
  // Where workers own pieces of the gradients, or have leaves of a parameter, zero beside those of this one.
  std::vector<float> grad(std::string_view name) const;

  // The gradients of the last accumulate(), a sum, from an element of the layout on, on the device; and what
  // an update multiplies them with. For who updates elsewhere.
  void* summed(int64_t element) { return sums_->slots().at(0, element); }
  float update_scale() const;

  Backend& backend() { return backend_; }
  const FlatLayout& layout() const { return layout_; }
  const FlatLayout& whole() const { return state_.whole(); }  // of the model, whoever holds it
  const std::vector<StateTensor>& params() const { return state_.params(); }
  const Ownership& ownership() const { return ownership_; }
  // That parameters are gathered in; none where they are whole, or in the stages of a pipeline.
  const std::vector<ParamUnit>& units() const { return units_; }
  Executable& backward() { return *phase(Phase::kBackward); }
  Executable& update() { return *phase(Phase::kUpdate); }
  int64_t param_count() const;
  // Spent waiting for other workers so far.
  double comm_seconds() const {
    return (rounds_ ? rounds_->comm_seconds() : sums_->comm_seconds()) +
           (unit_gathers_ ? unit_gathers_->seconds() : 0) + (pipeline_ ? pipeline_->comm_seconds() : 0) +
           meeting_seconds_;
  }
  const PipelineRunner* pipeline() const { return pipeline_.get(); }  // null: the model is not in stages
  // Of the sums of gradients, by bucket; null where they are not reduced in buckets while backward goes on.
  const CommProfile* comm_profile() const {
    return rounds_ || pipeline_ || sums_->profile().buckets().empty() ? nullptr : &sums_->profile();
  }
  void restart_comm_profile() {
    if (sums_) sums_->restart_profile();
  }
  // Spent waiting for a checkpoint to have read the state.
  double held_seconds() const { return state_.gate().waited_seconds(); }
  // In which gradients are reduced; none without peers.
  const Buckets& buckets() const { return rounds_ ? rounds_->buckets() : sums_->buckets(); }
  // How the devices of those who share the leaves reach each other; "" where that is no question.
  std::string device_route() const { return ways_.text(); }
  // From the model's graph to all plans.
  double compile_milliseconds() const { return compile_milliseconds_; }
  // Bytes of parameters, gradients, optimizer state, inputs, the arena and what kernels hold: the planned
  // use.
  int64_t planned_bytes() const;

 private:
  void make_phases(TrainPlans& plans);
  std::unique_ptr<Buffer> flat_memory(int64_t bytes);
  void make_sums();
  void sum_stages(const std::vector<Slice>& parts);  // of a pipeline
  void allocate_scalars();
  void bind_all();
  Executable* phase(Phase phase) const {
    return phases_[static_cast<size_t>(phase)].get();
  }  // null: not there
  // Puts a phase on the compute stream, where it is there.
  void enqueue(Phase which);
  void set_step(int64_t step);
  void set_random(int64_t microbatch, int64_t step);
  // Runs one microbatch's backward into the slot at hand: written, or added to what it holds.
  void run_backward(int64_t microbatch);
  // The same, of all leaves that are this worker's or of those that it takes in turns (ZeRO-2).
  int64_t sum_leaves(const Loader& load, int64_t step, const Request& request);
  int64_t sum_rounds(const Loader& load, int64_t step, const Request& request);
  // One microbatch of the leaf of a round, the n-th; a worker without one takes part in the others' gathers.
  void run_in_round(int64_t round, int64_t n, const Loader& load, int64_t step);
  void sum_pipeline(const Loader& load, int64_t step);
  // Gives those who read them the parameters that this worker holds.
  void renew_copies();
  void renew_copy(const StateTensor& tensor, int holder, const std::set<int>& readers);
  void load_microbatch(const Loader& load, int64_t microbatch, int64_t step);
  // Some bytes of a tensor that is split, on all workers.
  void read_together(const StateTensor& tensor, int64_t first, std::span<std::byte> into);
  void gather_with(UnitSource* source);
  // Everybody's parts of the norm, from those that this worker makes; the requests of all, where the model is
  // split.
  int64_t sum_squares(int64_t request);
  void update_slices();
  // The sum of one of them, on the device; and where that of an owned element is.
  void* root_of(size_t slice) const;
  void* root_at(int64_t element) const;
  LossTotals& totals() const { return rounds_ ? rounds_->totals() : sums_->totals(); }
  // The sums, of the dense ones those from `first` on.
  void bind_root(Executable& executable, int64_t first = 0);
  // Whether rows of tables may lack steps. Where none does, forward changes nothing of the state.
  bool rows_are_behind() const { return caught_up_ != steps_applied_; }
  // Where workers hold the state together: until all of the host have come here.
  void meet_holders(const std::string& about);
  void bind_gradients(Executable& executable, GradientSlot& slot, std::vector<RowList>& lists);
  StepResult read_result(int64_t request);
  std::vector<float> entry_grad(const FlatEntry& entry) const;
  // What leaves have not sent yet of their gradients; null where they send all.
  float* make_residuals();
  // A step that was accumulated and not applied leaves nothing behind.
  void forget_left_out();
  // Values on the device, as floats.
  std::vector<float> read_floats(DType dtype, const void* data, int64_t count) const;

  Backend& backend_;
  TrainOptions options_;
  double compile_milliseconds_ = 0;
  FlatLayout layout_;
  ModelHolders holders_;
  std::vector<RowTable> tables_;
  MeshGroups groups_;
  Group* group_;   // of those who share the leaves
  Group* owners_;  // of those who share out the state: the same, or a part of them
  Ownership ownership_;
  DeviceWays ways_;
  std::shared_ptr<Buffer> gathered_;  // parameters that peers open, until they have
  TrainState state_;
  std::shared_ptr<Buffer> arena_;
  std::array<std::unique_ptr<Executable>, kPhases> phases_;
  struct SliceUpdate {
    size_t slice = 0;
    std::unique_ptr<Executable> update, average;
  };
  std::vector<SliceUpdate> slices_;  // where the state is split
  std::vector<Slice> owned_;         // that this worker updates
  std::unique_ptr<LeafSums> sums_;
  std::unique_ptr<RoundSums> rounds_;      // instead, where workers take leaves in turns
  std::unique_ptr<Buffer> leaf_;           // of several microbatches, or of stages, that are summed in rounds
  std::unique_ptr<SquareGather> squares_;  // where the state is split
  std::vector<Slice> squared_;             // whose parts of the norm this worker makes
  std::unique_ptr<PipelineRunner> pipeline_;
  std::unique_ptr<StageSums> stage_sums_;  // of its stages
  std::unique_ptr<ParamGather> params_gather_;
  std::vector<ParamUnit> units_;  // where parameters are split
  std::unique_ptr<UnitGathers> unit_gathers_;
  StagedMessages messages_;
  SplitTensors split_;
  std::unique_ptr<UnitReader> unit_reader_;  // of the leader, alone
  std::vector<RowList> lists_;               // of a microbatch that is added to a leaf
  std::unique_ptr<StepInputs> inputs_;
  // The step, its learning rate and those before it, and the scale of its gradients, on the device.
  std::unique_ptr<Buffer> scalars_;
  StagingRing to_scalars_;
  std::unique_ptr<Buffer> result_;                    // pinned: what the host reads of a step
  std::unordered_map<std::string, void*> addresses_;  // of the scalars, by name
  int64_t steps_applied_ = 0;
  int64_t caught_up_ = 0;  // the step that every row has reached
  double meeting_seconds_ = 0;
  int64_t communication_bytes_ = 0;  // that collectives of graphs go through
  bool unapplied_ = false;           // gradients have been accumulated since the last update
};

}  // namespace lockstep
