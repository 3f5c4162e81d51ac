#include "train/pipeline/pipeline_plans.h"

#include <algorithm>
#include <map>
#include <set>

namespace lockstep {
namespace {

constexpr int64_t kAlignment = 256;

constexpr std::string_view kLastOfOrder = "schedule";

Graph schedule_part(const Graph& part, const PassOptions& passes) {
  return part.outputs().empty() ? part : run_passes(part, passes);
}

std::optional<Plan> plan_part(const Graph& part, Backend& backend, PassOptions passes) {
  if (part.outputs().empty()) return std::nullopt;
  passes.start_after = kLastOfOrder;
  return compile_plan(part, backend, passes);
}

// From the first of its forwards to the end of its last backward, over all stages of a rank.
int64_t microbatches_at_once(const std::vector<PipelineAction>& actions) {
  std::map<int64_t, size_t> last;
  for (size_t i = 0; i < actions.size(); ++i) last[actions[i].microbatch] = i;
  std::set<int64_t> now;
  size_t most = 0;
  for (size_t i = 0; i < actions.size(); ++i) {
    now.insert(actions[i].microbatch);
    most = std::max(most, now.size());
    if (last.at(actions[i].microbatch) == i) now.erase(actions[i].microbatch);
  }
  return static_cast<int64_t>(most);
}

// Of a stage's graphs, what they read of the data.
void add_inputs(Graph& into, const Graph& from, const std::set<std::string>& slot) {
  for (const GraphInput& input : from.inputs()) {
    const std::string& name = from.name(input.value);
    if ((input.role == Role::kInput || input.role == Role::kState) && !slot.contains(name) &&
        !into.find(name).valid())
      into.add_input(name, from.type(input.value), input.role);
  }
}

}  // namespace

int64_t padded_slot_bytes(const Type& type) {
  return (type.bytes() + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t StagePlans::slot_bytes() const {
  int64_t bytes = 0;
  for (const SlotValue& value : slot) bytes += padded_slot_bytes(value.type);
  return bytes;
}

StageGraphs schedule_stage(const StageCut& cut, int stage, PassOptions passes) {
  passes.start_after = kLastBeforeStages;
  passes.stop_after = kLastOfOrder;
  StageGraphs graphs = cut.stage(stage);
  graphs.forward = schedule_part(graphs.forward, passes);
  for (std::vector<Graph>* parts : {&graphs.backward, &graphs.weights})
    for (Graph& part : *parts) part = schedule_part(part, passes);
  return graphs;
}

PipelinePlans plan_pipeline(const StageCut& cut, const std::function<const StageGraphs&(int)>& scheduled,
                            Backend& backend, const PassOptions& passes, const PipelineShape& shape,
                            int rank) {
  PipelinePlans plans;
  plans.shape = shape;
  plans.rank = rank;
  plans.transfers = cut.transfers();
  plans.loss = cut.loss();
  plans.count = cut.count();
  plans.inputs.emplace(cut.ops(), "inputs");
  const std::vector<int64_t> slots = slots_of_stages(shape);
  for (int stage = rank; stage < shape.stages(); stage += shape.ranks) {
    const StageGraphs& from = scheduled(stage);
    StagePlans& one = plans.stages.emplace_back();
    one.stage = stage;
    one.slots = slots[static_cast<size_t>(stage)];
    one.slot = from.slot;
    std::set<std::string> in_slot;
    for (const SlotValue& value : one.slot) in_slot.insert({value.value, slot_name(value.value)});
    one.forward = plan_part(from.forward, backend, passes);
    add_inputs(*plans.inputs, from.forward, in_slot);
    for (size_t i = 0; i < from.backward.size(); ++i) {
      one.backward[i] = plan_part(from.backward[i], backend, passes);
      add_inputs(*plans.inputs, from.backward[i], in_slot);
      if (from.weights.empty()) continue;
      one.weights[i] = plan_part(from.weights[i], backend, passes);
      add_inputs(*plans.inputs, from.weights[i], in_slot);
    }
  }
  plans.input_slots = microbatches_at_once(pipeline_actions(shape, rank));
  return plans;
}

std::vector<const Plan*> PipelinePlans::all() const {
  std::vector<const Plan*> there;
  for (const StagePlans& one : stages) {
    if (one.forward) there.push_back(&*one.forward);
    for (const auto* plans : {&one.backward, &one.weights})
      for (const std::optional<Plan>& plan : *plans)
        if (plan) there.push_back(&*plan);
  }
  return there;
}

int64_t PipelinePlans::in_flight_bytes() const {
  int64_t bytes = 0;
  for (const StagePlans& one : stages) bytes += one.slots * one.slot_bytes();
  for (const GraphInput& input : inputs->inputs())
    bytes += input_slots * padded_slot_bytes(inputs->type(input.value));
  return bytes;
}

}  // namespace lockstep
