// The plans of a training step, made before any memory is taken: what `lockstep check` prints and what a run
// compares with the memory there is.
//
// A step has phases, each a graph of its own. They run one after another, so that all share one arena of the
// size of the largest.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "comm/leaf_split.h"
#include "comm/mesh.h"
#include "model/tensor_leaves.h"
#include "passes/row_gradients.h"
#include "runtime/compile.h"
#include "runtime/flat.h"
#include "train/pipeline/pipeline_plans.h"
#include "train/state/model_holders.h"
#include "train/state/ownership.h"
#include "train/step/shared_graphs.h"
#include "train/sums/reduce_options.h"
#include "train/update/optimizer.h"

namespace lockstep {

struct TrainOptions {
  PassOptions passes = {};
  OptimizerSettings optimizer = {};
  uint64_t seed = 0;
  int64_t microbatches = 1;  // M
  int64_t leaves = 1;        // V, divides M
  double ema = 0;            // decay of the moving average of the weights; 0: none is kept
  int64_t workers = 1;       // that share the leaves; changes no bit
  int64_t rank = 0;          // of this one among them
  MeshShape mesh = {};       // of all workers; where it splits no model, its data is not looked at
  int mesh_rank = 0;         // of this worker in it
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int64_t chunks = 1;         // stages of a worker, interleaved
  int64_t tensor_leaves = 1;  // that the model is split into (model/tensor_leaves.h); mesh.tensor shares them
  int zero = 0;               // ZeRO stage: what they share out (docs/splitting.md); changes no bit
  int64_t zero_group = 0;     // so many of them among each other, who hold everything; 0: all do
  // Of this worker, where workers of a host may hold the state together; changes no bit.
  std::optional<HostPlace> host = {};
  ReduceOptions reduce = {};
  bool draws_weights = true;  // else somebody gives them before the first step

  int64_t owners() const { return zero > 0 && zero_group > 0 && zero_group < workers ? zero_group : workers; }
  Ownership ownership() const {
    const int count = static_cast<int>(owners());
    // Who owns everything with others shares memory with them alone.
    std::optional<HostPlace> place = host;
    if (place && place->count > count) place = HostPlace{place->index % count, count};
    return {place, optimizer, reduce, {zero, count, static_cast<int>(rank) % count}};
  }
  // The leaves that the owners of everything sum before others have a part in it.
  LeafRange owned_leaves() const {
    if (owners() == workers) return {0, leaves};
    return LeafSplit::search(leaves, static_cast<int>(workers / owners()))
        .range(static_cast<int>(rank / owners()));
  }
  // Whether workers take microbatches in turns and keep no sum but their piece of it (ZeRO-2 and 3).
  bool in_rounds() const { return ownership().splits_gradients(); }
  // Whether a sum that a worker holds takes several microbatches.
  bool accumulates() const {
    return reduce.order == SumOrder::kFast ? microbatches > workers : microbatches > leaves;
  }
};

// In the order of a step.
enum class Phase : uint8_t {
  kCatchUp,      // the rows of tables that a microbatch reads; where there are tables
  kBackward,     // a microbatch whose gradients are written; there unless stages have it
  kAccumulate,   // one whose gradients are added; where a leaf has several
  kSquares,      // this worker's parts of the norm; where gradients are owned
  kNorm,         // always there
  kCatchUpSums,  // the rows that any worker has a gradient for; where there are tables and peers
  kUpdate,       // always there; where the state is split, if there are tables
  kStatistics,   // running ones; where the model has some
  kCatchUpAll,   // every row, before anybody looks at the weights; where there are tables
  kAverage,      // moving averages of the weights, where they are kept
};
inline constexpr size_t kPhases = 10;

// Owned by one step, or, of plans that are only looked at, by all that are alike.
using PlanHandle = std::shared_ptr<Plan>;

// Where the state is split: the update of one slice that this worker owns, and of its averages.
struct SlicePlans {
  size_t slice = 0;  // of those that the worker owns
  PlanHandle update, average;
};

struct TrainPlans {
  FlatLayout layout;     // of what this worker holds
  FlatLayout whole;      // of the model
  ModelHolders holders;  // of its parts
  StageMap stages;       // of a pipeline
  LeafPieces pieces;     // that are entries of `whole`, where the model is split into leaves
  // Instead of kBackward and kAccumulate. Plans that are only looked at may have it together.
  std::shared_ptr<PipelinePlans> pipeline;
  std::vector<RowTable> tables;  // whose gradients are lists of rows
  std::vector<FrozenParam> frozen;
  std::vector<ParamUnit> units;  // that parameters are gathered in; none where they are whole, or in stages
  int64_t square_stride = 0;     // of the parts of the norm, where workers exchange them (SquareGather)
  std::array<PlanHandle, kPhases> phases;
  std::deque<SlicePlans> slices;
  double milliseconds = 0;  // from the model's graph to all of them

  PlanHandle& operator[](Phase phase) { return phases[static_cast<size_t>(phase)]; }
  const PlanHandle& operator[](Phase phase) const { return phases[static_cast<size_t>(phase)]; }
  const Plan& backward() const { return *(*this)[Phase::kBackward]; }
  std::vector<const Plan*> all() const;  // those that are there
  int64_t arena_bytes() const;
};

// Throws UserError where leaves do not divide microbatches, or the optimizer is unknown. `shared`: with plans
// that differ in nothing but the workers, the leaves and the policy of recomputation. Such plans are for
// looking at what they take, and not run: of the updates of slices that are alike they have one.
TrainPlans plan_training(const Model& logical, Backend& backend, const TrainOptions& options,
                         SharedGraphs* shared = nullptr);

}  // namespace lockstep
