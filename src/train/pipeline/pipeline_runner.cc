#include "train/pipeline/pipeline_runner.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "comm/mesh.h"
#include "passes/autodiff.h"
#include "train/state/group_memory.h"

namespace lockstep {

PipelineRunner::PipelineRunner(PipelinePlans plans, Backend& backend, Group& group, const FlatLayout& layout,
                               const TrainState& state, const StepInputs& inputs,
                               const std::shared_ptr<Buffer>& arena)
    : plans_(std::move(plans)),
      backend_(backend),
      group_(group),
      layout_(layout),
      inputs_(inputs),
      actions_(pipeline_actions(plans_.shape, plans_.rank)),
      posted_(static_cast<size_t>(plans_.shape.ranks), 0) {
  const auto executable = [&](std::optional<Plan>& plan) -> std::unique_ptr<Executable> {
    if (!plan) return nullptr;
    auto made = std::make_unique<Executable>(std::move(*plan), backend, arena);
    state.bind(*made);
    return made;
  };
  for (StagePlans& one : plans_.stages) {
    StagePart& part = parts_.emplace_back();
    part.stage = one.stage;
    part.slots = one.slots;
    part.forward = executable(one.forward);
    for (size_t i = 0; i < 2; ++i) {
      part.backward[i] = executable(one.backward[i]);
      part.weights[i] = executable(one.weights[i]);
    }
    for (const SlotValue& value : one.slot) {
      part.offsets[value.value] = part.slot_bytes;
      part.slot_bytes += padded_slot_bytes(value.type);
    }
    if (part.slot_bytes > 0) {
      const int64_t bytes = part.slots * part.slot_bytes;
      part.memory = in_host_memory() ? peer_memory(group, bytes) : backend.allocate(bytes);
    }
    if (!in_host_memory()) make_staging(part);
  }
  for (const GraphInput& input : plans_.inputs->inputs()) {
    data_offsets_[plans_.inputs->name(input.value)] = data_bytes_;
    data_bytes_ += padded_slot_bytes(plans_.inputs->type(input.value));
  }
  if (data_bytes_ > 0) data_ = backend.allocate(plans_.input_slots * data_bytes_);
  for (int peer = 0; peer < plans_.shape.ranks; ++peer) incoming_.push_back(incoming_from(peer));
}

void PipelineRunner::make_staging(StagePart& part) {
  for (size_t t = 0; t < plans_.transfers.size(); ++t) {
    const StageTransfer& transfer = plans_.transfers[t];
    if (plans_.shape.rank_of(transfer.from) == plans_.shape.rank_of(transfer.to)) continue;
    if (transfer.from != part.stage && transfer.to != part.stage) continue;
    part.staged[t] = part.staged_bytes;
    part.staged_bytes += padded_slot_bytes(transfer.type);
  }
  if (part.staged_bytes > 0) part.staging = StagingMemory(group_, backend_, part.slots * part.staged_bytes);
}

void PipelineRunner::bind_tensor_group(Group& group, DeviceTransfers* devices) {
  for (StagePart& part : parts_)
    for (const auto* executable :
         {&part.forward, &part.backward[0], &part.backward[1], &part.weights[0], &part.weights[1]})
      if (*executable) (*executable)->bind_group(name_of(MeshAxis::kTensor), group, devices);
}

std::vector<Slice> PipelineRunner::parts(const PipelinePlans& plans, const FlatLayout& layout,
                                         const StageMap& map) {
  std::vector<Slice> parts;
  for (const StagePlans& one : plans.stages) {
    Slice part{layout.numel(), 0};
    int64_t elements = 0;
    const auto entries = layout.entries();
    for (size_t i = 0; i < entries.size(); ++i) {
      if (map.stage_of(entries[i].name) != one.stage) continue;
      const int64_t end = i + 1 < entries.size() ? entries[i + 1].offset : layout.numel();
      part = {std::min(part.begin, entries[i].offset), std::max(part.end, end)};
      elements += end - entries[i].offset;
    }
    if (elements == 0) part = {0, 0};
    if (elements != part.size())
      throw UserError(
          "strategy.schedule interleaved: gradients of stage {} are not finished one after the other; use "
          "1f1b",
          one.stage);
    parts.push_back(part);
  }
  return parts;
}

std::vector<int> PipelineRunner::stages() const {
  std::vector<int> all;
  for (const StagePart& part : parts_) all.push_back(part.stage);
  return all;
}

template <typename Visit>
void PipelineRunner::for_executables(const Visit& visit) const {
  for (const StagePart& part : parts_) {
    if (part.forward) visit(*part.forward);
    for (const auto* executables : {&part.backward, &part.weights})
      for (const auto& executable : *executables)
        if (executable) visit(*executable);
  }
}

void PipelineRunner::gather_with(UnitSource& source) {
  for_executables([&](Executable& executable) { executable.gather_with(source); });
}

int PipelineRunner::loss_part() const {
  for (size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i].stage + 1 == plans_.shape.stages()) return static_cast<int>(i);
  return -1;
}

void* PipelineRunner::value(StagePart& part, const std::string& name, int64_t microbatch) {
  return static_cast<char*>(part.memory->data()) + microbatch % part.slots * part.slot_bytes +
         part.offsets.at(name);
}

std::byte* PipelineRunner::reached(StagePart& part, size_t transfer, int64_t microbatch) {
  if (in_host_memory())
    return static_cast<std::byte*>(value(part, plans_.transfers[transfer].value, microbatch));
  return part.staging.data() + microbatch % part.slots * part.staged_bytes + part.staged.at(transfer);
}

// Rebinding resolves all addresses anew: some microseconds for a graph of hundreds of nodes.
void PipelineRunner::bind(Executable& executable, StagePart& part, int64_t microbatch) {
  const std::string prefix = slot_name("");
  for (const GraphInput& input : executable.graph().inputs()) {
    if (input.role != Role::kInput && input.role != Role::kState) continue;
    const std::string& name = executable.graph().name(input.value);
    if (const auto data = data_offsets_.find(name); data != data_offsets_.end())
      executable.bind(name, static_cast<char*>(data_->data()) +
                                microbatch % plans_.input_slots * data_bytes_ + data->second);
    else
      executable.bind(name,
                      value(part, name.starts_with(prefix) ? name.substr(prefix.size()) : name, microbatch));
  }
}

void PipelineRunner::bind_gradients(Executable& executable, StageSums& sums, size_t part) {
  for (const GraphInput& input : executable.graph().inputs()) {
    if (input.role != Role::kGrad) continue;
    const std::string& name = executable.graph().name(input.value);
    executable.bind(name, sums.gradient(part, layout_.find(name.substr(grad_name("").size())).offset));
  }
}

std::vector<PipelineRunner::Incoming> PipelineRunner::incoming_from(int peer) const {
  std::vector<Incoming> all;
  if (peer == plans_.rank) return all;
  for (const PipelineAction& action : pipeline_actions(plans_.shape, peer)) {
    if (action.kind == ActionKind::kWeightGradients) continue;
    const bool backward = action.kind != ActionKind::kForward;
    for (size_t t = 0; t < plans_.transfers.size(); ++t) {
      const StageTransfer& transfer = plans_.transfers[t];
      if (transfer.from == action.stage && transfer.backward == backward &&
          plans_.shape.rank_of(transfer.to) == plans_.rank)
        all.push_back({t, action.microbatch});
    }
  }
  return all;
}

void PipelineRunner::post_receives() {
  for (size_t peer = 0; peer < incoming_.size(); ++peer)
    for (size_t& next = posted_[peer]; next < incoming_[peer].size(); ++next) {
      const auto [index, microbatch] = incoming_[peer][next];
      const StageTransfer& transfer = plans_.transfers[index];
      StagePart& part = part_of(transfer.to);
      if (microbatch >= part.finished + part.slots) break;
      receiving_[{index, microbatch}] = group_.start_receive(
          static_cast<int>(peer),
          {reached(part, index, microbatch), static_cast<size_t>(transfer.type.bytes())});
    }
}

void PipelineRunner::wait(const Group::Ticket& ticket) {
  const auto start = std::chrono::steady_clock::now();
  group_.wait(ticket);
  comm_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void PipelineRunner::compute(Executable& executable, ActionKind kind) {
  const auto start = std::chrono::steady_clock::now();
  executable.run();
  if (!is_warm_) return;
  Work& work = work_[static_cast<size_t>(kind)];
  work.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++work.microbatches;
}

void PipelineRunner::receive(StagePart& part, bool backward, int64_t microbatch) {
  post_receives();
  for (size_t t = 0; t < plans_.transfers.size(); ++t) {
    const StageTransfer& transfer = plans_.transfers[t];
    if (transfer.to != part.stage || transfer.backward != backward) continue;
    if (plans_.shape.rank_of(transfer.from) == plans_.rank) {
      if (!backward)
        backend_.copy(value(part, transfer.value, microbatch),
                      value(part_of(transfer.from), transfer.value, microbatch), transfer.type.bytes());
      continue;
    }
    const auto found = receiving_.find({t, microbatch});
    LOCKSTEP_CHECK(found != receiving_.end(), "{} of microbatch {} has no slot in stage {}", transfer.value,
                   microbatch, part.stage);
    wait(found->second);
    receiving_.erase(found);
    if (!in_host_memory())
      backend_.upload(value(part, transfer.value, microbatch), reached(part, t, microbatch),
                      transfer.type.bytes());
  }
}

void PipelineRunner::send(StagePart& part, bool backward, int64_t microbatch) {
  for (size_t t = 0; t < plans_.transfers.size(); ++t) {
    const StageTransfer& transfer = plans_.transfers[t];
    if (transfer.from != part.stage || transfer.backward != backward) continue;
    void* const data = value(part, transfer.value, microbatch);
    const int64_t bytes = transfer.type.bytes();
    const int peer = plans_.shape.rank_of(transfer.to);
    if (peer == plans_.rank) {
      if (backward) backend_.copy(value(part_of(transfer.to), transfer.value, microbatch), data, bytes);
      continue;
    }
    std::byte* const place = reached(part, t, microbatch);
    if (!in_host_memory()) backend_.download(place, data, bytes);
    part.sent[microbatch].push_back(group_.start_send(peer, {place, static_cast<size_t>(bytes)}));
  }
}

void PipelineRunner::forward(StagePart& part, int64_t microbatch, const StageSums& sums, const Load& load) {
  // Who had the slot before is through, but what it sent may not be.
  if (const auto before = part.sent.find(microbatch - part.slots); before != part.sent.end()) {
    for (const Group::Ticket& ticket : before->second) wait(ticket);
    part.sent.erase(before);
  }
  if (microbatch == loaded_) {
    ++loaded_;
    if (data_bytes_ > 0) load(sums.tree().microbatch(microbatch));
    for (const auto& [name, offset] : data_offsets_)
      backend_.compute().copy(
          static_cast<char*>(data_->data()) + microbatch % plans_.input_slots * data_bytes_ + offset,
          inputs_.address(name), plans_.inputs->type(plans_.inputs->find(name)).bytes());
  }
  receive(part, false, microbatch);
  if (part.forward) {
    bind(*part.forward, part, microbatch);
    compute(*part.forward, ActionKind::kForward);
  }
  send(part, false, microbatch);
}

void PipelineRunner::backward(StagePart& part, ActionKind kind, int64_t microbatch, StageSums& sums) {
  const auto index = static_cast<size_t>(&part - parts_.data());
  const int64_t number = sums.tree().microbatch(microbatch);
  const bool first = sums.tree().begins_leaf(number);
  const bool weights = kind == ActionKind::kWeightGradients;
  const bool sums_up = kind != ActionKind::kInputGradients;
  if (!weights) receive(part, true, microbatch);
  if (sums_up && first) sums.begin_leaf(index);
  const auto& executable = (weights ? part.weights : part.backward)[first ? 0 : 1];
  if (executable) {
    bind(*executable, part, microbatch);
    if (sums_up) bind_gradients(*executable, sums, index);
    compute(*executable, kind);
  }
  if (!weights) send(part, true, microbatch);
  if (!sums_up) return;
  if (static_cast<int>(index) == loss_part())
    sums.add_loss(index, microbatch, value(part, plans_.loss, microbatch),
                  value(part, plans_.count, microbatch));
  if (sums.tree().ends_leaf(number)) sums.end_leaf(index);
  ++part.finished;
  post_receives();
}

void PipelineRunner::run(StageSums& sums, const Load& load) {
  loaded_ = 0;
  for (StagePart& part : parts_) part.finished = 0;
  std::ranges::fill(posted_, 0);
  for (const PipelineAction& action : actions_) {
    StagePart& part = part_of(action.stage);
    if (action.kind == ActionKind::kForward)
      forward(part, action.microbatch, sums, load);
    else
      backward(part, action.kind, action.microbatch, sums);
  }
  for (StagePart& part : parts_) {
    for (const auto& [microbatch, tickets] : part.sent)
      for (const Group::Ticket& ticket : tickets) wait(ticket);
    part.sent.clear();
  }
  is_warm_ = true;
}

int64_t PipelineRunner::bytes() const {
  int64_t bytes = plans_.input_slots * data_bytes_;
  for (const StagePart& part : parts_)
    if (part.memory) bytes += part.memory->bytes();
  return bytes;
}

KernelMemory PipelineRunner::kernels() const {
  KernelMemory all;
  for_executables([&](const Executable& executable) { all += executable.plan().memory.kernels; });
  return all;
}

}  // namespace lockstep
