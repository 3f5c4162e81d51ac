// The plans of a rank of a pipeline: for each of its stages forward, backward and, where gradients of weights
// are made apart, these; and what a microbatch in flight holds.
#pragma once
#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "passes/stage.h"
#include "runtime/compile.h"
#include "train/pipeline/pipeline_schedule.h"

namespace lockstep {

struct StagePlans {
  int stage = 0;
  std::optional<Plan> forward;
  // Gradients are written, or added. Nothing where such a part has nothing to do.
  std::array<std::optional<Plan>, 2> backward, weights;
  std::vector<SlotValue> slot;
  int64_t slots = 1;  // microbatches that hold one at once

  int64_t slot_bytes() const;
};

struct PipelinePlans {
  PipelineShape shape;
  int rank = 0;  // of the pipeline
  std::deque<StagePlans> stages;
  std::vector<StageTransfer> transfers;  // of all stages
  std::string loss, count;
  std::optional<Graph> inputs;  // the data that this rank's stages read, as inputs of an empty graph
  int64_t input_slots = 1;      // microbatches whose data is held at once

  std::vector<const Plan*> all() const;
  // Activations of the microbatches in flight, and their data.
  int64_t in_flight_bytes() const;
};

// Where a value lies in a slot, after those before it.
int64_t padded_slot_bytes(const Type& type);

// The last pass that runs over a graph before it is cut into stages: those behind it change no bit, wherever
// a graph ends.
inline constexpr std::string_view kLastBeforeStages = "patterns";

// The graphs of a stage in the order that they run in, whatever units its parameters are gathered in.
StageGraphs schedule_stage(const StageCut& cut, int stage, PassOptions passes);

// `scheduled`: gives these. `passes`: with the units of this rank's parameters where these are split.
PipelinePlans plan_pipeline(const StageCut& cut, const std::function<const StageGraphs&(int)>& scheduled,
                            Backend& backend, const PassOptions& passes, const PipelineShape& shape,
                            int rank);

}  // namespace lockstep
