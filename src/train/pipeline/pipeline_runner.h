// PipelineRunner: one rank of a pipeline through a step.
//
// It does what its table says (train/pipeline/pipeline_schedule.h). A microbatch in flight has a slot in each
// stage, a buffer of all that its forward leaves for its backward, what it receives and what it sends. Slots
// are a ring, since microbatches come and go in index order. Receives are posted as soon as their slot is
// free, in the order in which the sender sends; sends are waited for when their slot is used again. So
// transfers go on while this rank computes, and nobody waits for a send before it has received.
#pragma once
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/mesh.h"
#include "train/pipeline/pipeline_plans.h"
#include "train/pipeline/stage_sums.h"
#include "train/state/group_memory.h"
#include "train/state/train_state.h"
#include "train/step/step_inputs.h"

namespace lockstep {

class PipelineRunner {
 public:
  // Brings the data of a microbatch, of all of a step, into the inputs.
  using Load = std::function<void(int64_t microbatch)>;

  PipelineRunner(PipelinePlans plans, Backend& backend, Group& group, const FlatLayout& layout,
                 const TrainState& state, const StepInputs& inputs, const std::shared_ptr<Buffer>& arena);

  // The tensor ranks of its stages.
  void bind_tensor_group(Group& group, DeviceTransfers* devices);

  // Of the layout, those of each of this rank's stages: their sums are complete at different times.
  static std::vector<Slice> parts(const PipelinePlans& plans, const FlatLayout& layout, const StageMap& map);
  // Which of them sums the loss; -1: another rank's.
  int loss_part() const;

  // This rank's, from the first to the last.
  std::vector<int> stages() const;
  // Where parameters are split: who gathers them.
  void gather_with(UnitSource& source);

  // Forward and backward of all microbatches of this pipeline, into sums that are in those parts.
  void run(StageSums& sums, const Load& load);
  double comm_seconds() const { return comm_seconds_; }  // spent waiting for other stages
  // What this rank has computed by now, from the second step on, by ActionKind. Where tensor ranks share it
  // or parameters are gathered, with the waiting for those.
  struct Work {
    double seconds = 0;
    int64_t microbatches = 0;
  };
  const std::array<Work, 4>& work() const { return work_; }
  int64_t bytes() const;  // of slots, on the device
  KernelMemory kernels() const;

 private:
  struct StagePart {
    std::unique_ptr<Executable> forward;
    std::array<std::unique_ptr<Executable>, 2> backward, weights;
    std::map<std::string, int64_t> offsets;  // of the values of a slot
    int64_t slot_bytes = 0, slots = 1;
    std::unique_ptr<Buffer> memory;
    // Where the device has memory of its own: what is sent and received, in that of the host.
    StagingMemory staging;
    std::map<size_t, int64_t> staged;  // offsets in a slot of it, by transfer
    int64_t staged_bytes = 0;          // of such a slot
    int stage = 0;
    int64_t finished = 0;                                // microbatches of this step that are through
    std::map<int64_t, std::vector<Group::Ticket>> sent;  // by microbatch
  };
  struct Incoming {
    size_t transfer;
    int64_t microbatch;
  };

  StagePart& part_of(int stage) { return parts_[static_cast<size_t>(stage / plans_.shape.ranks)]; }
  void* value(StagePart& part, const std::string& name, int64_t microbatch);
  void make_staging(StagePart& part);
  // Where the group reaches what is transferred: the value itself, or its place in the staging.
  std::byte* reached(StagePart& part, size_t transfer, int64_t microbatch);
  bool in_host_memory() const { return backend_.memory() == MemoryKind::kHost; }
  void bind(Executable& executable, StagePart& part, int64_t microbatch);
  void bind_gradients(Executable& executable, StageSums& sums, size_t part);
  template <typename Visit>
  void for_executables(const Visit& visit) const;
  std::vector<Incoming> incoming_from(int peer) const;
  void post_receives();
  void receive(StagePart& part, bool backward, int64_t microbatch);
  void send(StagePart& part, bool backward, int64_t microbatch);
  void forward(StagePart& part, int64_t microbatch, const StageSums& sums, const Load& load);
  void backward(StagePart& part, ActionKind kind, int64_t microbatch, StageSums& sums);
  void wait(const Group::Ticket& ticket);
  void compute(Executable& executable, ActionKind kind);

  PipelinePlans plans_;
  Backend& backend_;
  Group& group_;
  FlatLayout layout_;
  const StepInputs& inputs_;
  std::vector<PipelineAction> actions_;
  std::vector<StagePart> parts_;
  std::unique_ptr<Buffer> data_;  // of the microbatches in flight
  std::map<std::string, int64_t> data_offsets_;
  int64_t data_bytes_ = 0;                       // of one
  int64_t loaded_ = 0;                           // microbatches of this step
  std::vector<std::vector<Incoming>> incoming_;  // by peer, in the order of the peer
  std::vector<size_t> posted_;                   // by peer
  std::map<std::pair<size_t, int64_t>, Group::Ticket> receiving_;
  double comm_seconds_ = 0;
  std::array<Work, 4> work_;
  bool is_warm_ = false;  // has run a step
};

}  // namespace lockstep
