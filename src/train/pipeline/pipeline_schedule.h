// The schedules of a pipeline, as tables: what each rank does in a step, in order.
//
//   p = 4, m = 6, zero-bubble, rank 2:  F0 F1 I0 F2 I1 F3 I2 W0 F4 I3 W1 F5 I4 W2 I5 W3 W4 W5
//
// F is forward of a microbatch, B its backward; zero-bubble takes B apart into I, the gradients of inputs,
// which the stage before waits for, and W, those of weights, which nobody does. With interleaved stages a
// rank has several: stage s is on rank s mod p.
//
// Every schedule goes through the microbatches of a stage in index order, in each of F, B, I and W: sums over
// microbatches have one order, whatever the schedule.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/choices.h"

namespace lockstep {

enum class ActionKind : uint8_t { kForward, kBackward, kInputGradients, kWeightGradients };

struct PipelineAction {
  ActionKind kind = ActionKind::kForward;
  int stage = 0;
  int64_t microbatch = 0;  // counted from 0 among those of this pipeline
  bool operator==(const PipelineAction&) const = default;
};

struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int ranks = 1;             // p
  int chunks = 1;            // v, stages of a rank; 1 unless interleaved
  int64_t microbatches = 1;  // m

  int stages() const { return ranks * chunks; }
  int rank_of(int stage) const { return stage % ranks; }
};

// What a rank does, in order.
std::vector<PipelineAction> pipeline_actions(const PipelineShape& shape, int rank);

// The most microbatches that are between their forward and the last that needs what it has saved, of a stage.
int64_t most_in_flight(const std::vector<PipelineAction>& actions, int stage);

// Runs the tables of all ranks against each other with equally long F, I and W: one line a rank, one column
// a unit of time ("." idle). A receive is posted when one of `slots` of its stage is free, in the order in
// which its sender sends. Throws InternalError when nobody can go on.
std::string timeline(const PipelineShape& shape, const std::vector<int64_t>& slots);
// Slots that every stage needs to hold activations, so that nobody waits for ever.
std::vector<int64_t> slots_of_stages(const PipelineShape& shape);

}  // namespace lockstep
