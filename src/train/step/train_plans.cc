#include "train/step/train_plans.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/error.h"
#include "comm/leaf_split.h"
#include "graph/text.h"
#include "passes/autodiff.h"
#include "train/sums/owned_gathers.h"
#include "train/sums/sum_tree.h"
#include "train/sums/unit_gathers.h"
#include "train/update/ema.h"
#include "train/update/statistics.h"
#include "train/update/update.h"

namespace lockstep {
namespace {

// A leaf of one microbatch, whose sums nobody keeps, passes by part by part.
Region gradient_region(const FlatLayout& layout, const TrainOptions& options) {
  Region region;
  if (options.in_rounds() && !options.accumulates()) {
    const Buckets buckets = options.ownership().buckets(layout);
    for (const Slice& part : buckets.parts()) region.passing.push_back(layout.sums_offset(part.begin));
  }
  region.bytes = layout.sums_bytes();
  for (const FlatEntry& entry : layout.entries())
    region.entries.push_back({grad_name(entry.name), layout.sums_offset(entry.offset)});
  for (const FlatEntry& entry : layout.statistics())
    region.entries.push_back({entry.name, layout.sums_offset(entry.offset)});
  return region;
}

// The graphs of a worker's part of the model behind passes that know nothing of the layout.
class PartGraphs {
 public:
  PartGraphs(const Model& model, Backend& backend, const TrainOptions& options, PassOptions passes,
             SharedGraphs& shared)
      : model_(model),
        passes_(std::move(passes)),
        tensor_(fmt::format("tensor {} of {} leaves, rank {}", options.mesh.tensor, options.tensor_leaves,
                            options.mesh.coordinate(MeshAxis::kTensor, options.mesh_rank))),
        shared_(shared) {
    passes_.units.clear();
    passes_.product_epilogues = backend.has_product_epilogues();
  }

  // `added`: gradients are added to what is there, not written.
  const Graph& before_stages(bool added) { return after(kLastBeforeStages, added); }
  const Graph& scheduled(bool added) { return after(kLastShared, added); }
  // What they depend on.
  std::string key() const { return fmt::format("{}, recompute {}", tensor_, name_of(passes_.recompute)); }

  // The last pass that knows nothing of the layout.
  static constexpr std::string_view kLastShared = "schedule";

 private:
  // Up to here policies of recomputation make no difference, or only whether marks of blocks are kept.
  static constexpr std::string_view kLastAlike = "row_gradients";
  static constexpr std::string_view kLastButMarks = "product_epilogues";

  static std::string_view before(std::string_view last) {
    if (last == kLastShared) return kLastBeforeStages;
    if (last == kLastBeforeStages) return kLastButMarks;
    return last == kLastButMarks ? kLastAlike : std::string_view();
  }

  std::string key_after(std::string_view last) const {
    if (last == kLastAlike) return tensor_;
    if (last != kLastButMarks) return key();
    return fmt::format("{}{}", tensor_, passes_.recompute == Recompute::kBlock ? ", marks" : "");
  }

  const Graph& after(std::string_view last, bool added) {
    // What pipelines are cut from is for all of them; a model that is not cut has this order alone.
    SharedGraphs& shared = last == kLastShared ? shared_ : shared_.of_all();
    const std::string key =
        fmt::format("after {}, {}, {}", last, added ? "added" : "written", key_after(last));
    return shared.once(key, [&] {
      PassOptions passes = passes_;
      passes.accumulate_gradients = added;
      passes.start_after = before(last);
      passes.stop_after = last;
      return run_passes(passes.start_after.empty() ? model_.graph : after(before(last), added), passes);
    });
  }

  const Model& model_;
  PassOptions passes_;
  std::string tensor_;
  SharedGraphs& shared_;
};

// The plans of a job's layouts: each its own, or, where they are only looked at, one for all that are alike.
class Plans {
 public:
  Plans(SharedGraphs& shared, bool looked_at) : shared_(shared), looked_at_(looked_at) {}

  template <typename Make>
  PlanHandle once(const std::string& key, const Make& make) {
    const auto owned = [&] { return std::make_shared<Plan>(make()); };
    return looked_at_ ? shared_.once("plan of " + key, owned) : owned();
  }

 private:
  SharedGraphs& shared_;
  bool looked_at_;
};

void plan_backward(TrainPlans& plans, PartGraphs& graphs, Plans& all, Backend& backend,
                   const TrainOptions& options, PassOptions passes) {
  const Region region = gradient_region(plans.layout, options);
  passes.start_after = PartGraphs::kLastShared;
  const auto plan = [&](bool added) {
    // Parts and units follow from the layout, and this from the tensor rank.
    const std::string key =
        fmt::format("backward, {}, {}{}{}", added ? "added" : "written", graphs.key(),
                    region.passing.empty() ? "" : ", passing by", passes.units.empty() ? "" : ", in units");
    passes.accumulate_gradients = added;
    return all.once(key, [&] { return compile_plan(graphs.scheduled(added), backend, passes, region); });
  };
  plans[Phase::kBackward] = plan(false);
  if (options.accumulates()) plans[Phase::kAccumulate] = plan(true);
}

StageCut cut_into_stages(PartGraphs& graphs, const StageMap& map, const TrainOptions& options) {
  std::vector<const Graph*> given = {&graphs.before_stages(false)};
  if (options.accumulates()) given.push_back(&graphs.before_stages(true));
  return StageCut(given, map, options.schedule == PipelineSchedule::kZeroBubble);
}

// The update works on sums and parameters as they are stored, whatever forward computes in.
// `alike`: of slices of one size one is planned, which takes what each of them takes.
void plan_update(TrainPlans& plans, const Model& model, Plans& all, Backend& backend,
                 const TrainOptions& options, PassOptions passes, bool alike) {
  passes.disabled.insert(passes.disabled.end(), {"autodiff", "bf16"});
  passes.recompute = Recompute::kNone;  // there is no backward
  std::vector<RowTable> merged = plans.tables;
  for (RowTable& table : merged) table.ids *= options.microbatches;
  const auto plan_with = [&](const Graph& graph, const PassOptions& some) {
    return all.once(alike ? to_text(graph) : "", [&] { return compile_plan(graph, backend, some); });
  };
  const auto plan = [&](const Graph& graph) { return plan_with(graph, passes); };
  const std::vector<Slice> owned = options.ownership().owned(plans.layout);
  const auto average = [&](int64_t elements, const std::vector<RowTable>& tables) {
    return plan(build_ema_update({plans.layout.dtype(), {elements}}, tables, options.ema));
  };
  const bool split = options.ownership().is_split();
  if (split || plans.holders.is_split()) {
    const std::vector<Slice> squared =
        plans.holders.is_split()
            ? squared_by(options.mesh_rank, plans.layout, plans.holders, options.ownership())
            : owned;
    // One op of many pieces, which passes would only copy.
    PassOptions none = passes;
    none.start_after = PartGraphs::kLastShared;
    if (numel(squared) > 0)
      plans[Phase::kSquares] = plan_with(build_square_sums(plans.layout.dtype(), squared), none);
    plans[Phase::kNorm] = plan(build_norm_of_squares(plans.whole, merged, options.optimizer));
  } else {
    plans[Phase::kNorm] = plan(build_norm(plans.layout, merged, options.optimizer));
  }
  if (split) {
    std::set<int64_t> sizes;
    for (size_t i = 0; i < owned.size(); ++i) {
      if (owned[i].size() == 0 || (alike && !sizes.insert(owned[i].size()).second)) continue;
      SlicePlans& slice = plans.slices.emplace_back();
      slice.slice = i;
      slice.update = plan(build_update(plans.layout, owned[i], model.params, {}, options.optimizer));
      if (options.ema > 0) slice.average = average(owned[i].size(), {});
    }
    if (!merged.empty())
      plans[Phase::kUpdate] = plan(build_update(plans.layout, {}, model.params, merged, options.optimizer));
    if (!merged.empty() && options.ema > 0) plans[Phase::kAverage] = average(0, plans.tables);
  } else {
    plans[Phase::kUpdate] =
        plan(build_update(plans.layout, owned[0], model.params, merged, options.optimizer));
    if (options.ema > 0) plans[Phase::kAverage] = average(owned[0].size(), plans.tables);
  }
  if (plans.layout.statistics_numel() > 0)
    plans[Phase::kStatistics] =
        plan(build_statistics_update(plans.layout, options.microbatches, model.statistics_momentum));
  if (plans.tables.empty()) return;
  for (RowTable& table : merged) table.ids_input = grad_ids_name(table.name);
  if (options.workers > 1)
    plans[Phase::kCatchUpSums] = plan(build_catch_up(model.params, merged, options.optimizer, false));
  plans[Phase::kCatchUp] = plan(build_catch_up(model.params, plans.tables, options.optimizer, false));
  plans[Phase::kCatchUpAll] = plan(build_catch_up(model.params, plans.tables, options.optimizer, true));
}

// What the stage cannot split.
void require_stage(const TrainPlans& plans, const TrainOptions& options) {
  if (options.zero > 0 && !updates_elements(options.optimizer))
    throw UserError(
        "strategy.zero {} splits tensors between workers, and {} needs norms or means of whole ones; use "
        "adamw, adam, lion or sgd, or strategy.zero 0",
        options.zero, options.optimizer.name);
  if (options.zero < 2) return;
  if (!plans.tables.empty())
    throw UserError(
        "strategy.zero {}: gradients of table {} are lists of rows, which every worker needs as a whole; use "
        "strategy.zero 1, which leaves tables with every worker",
        options.zero, plans.tables[0].name);
  if (plans.layout.statistics_numel() > 0)
    throw UserError(
        "strategy.zero {}: running statistics of batch norms are summed with the gradients, for every "
        "worker; use strategy.zero 1",
        options.zero);
  if (options.reduce.order == SumOrder::kFast)
    throw UserError("strategy.zero {} adds up in the canonical order; leave strategy.reduce.order out",
                    options.zero);
}

void require_compression(const Backend& backend, const TrainOptions& options) {
  if (options.reduce.codec == GradientCodec::kNone || backend.memory() == MemoryKind::kHost) return;
  throw UserError(
      "strategy.reduce.compress {}: gradients are compressed in memory of the host, and {} has its own; use "
      "device: cpu, or strategy.reduce.compress none",
      name_of(options.reduce.codec), backend.name());
}

void require_route(const Backend& backend, const TrainOptions& options) {
  const DeviceRoute route = options.reduce.way.route;
  if (route == DeviceRoute::kAuto || route == DeviceRoute::kHost || backend.memory() == MemoryKind::kDevice)
    return;
  throw UserError("strategy.transport {} joins devices with memory of their own, and {} has none; use auto",
                  name_of(route), backend.name());
}

void require_pipeline(const TrainPlans& plans, const TrainOptions& options) {
  const int stages = options.mesh.pipeline;
  if (!plans.tables.empty()) {
    const RowTable& table = plans.tables[0];
    throw UserError(
        "strategy.pipeline {}: gradients of table {} are lists of rows, which are not split into stages; use "
        "strategy.pipeline 1, or a train.microbatch of more than {} ids, whose gradients are dense",
        stages, table.name, table.table[0] / kRowsPerId);
  }
  if (plans.whole.statistics_numel() > 0)
    throw UserError(
        "strategy.pipeline {}: running statistics of batch norms are not split into stages; use "
        "strategy.pipeline 1",
        stages);
  const int64_t uneven = options.leaves % options.workers;
  if (options.zero > 1 && uneven > 0 && options.chunks > 1 &&
      options.schedule == PipelineSchedule::kInterleaved)
    throw UserError(
        "strategy.schedule interleaved with strategy.zero {}: {} pipelines do not all have as many of the {} "
        "leaves, and would exchange gradients in different orders; use strategy.schedule 1f1b, or a "
        "strategy.leaves that {} divides",
        options.zero, options.workers, options.leaves, options.workers);
  if (options.ownership().splits_params() && uneven > 0)
    throw UserError(
        "strategy.pipeline {} with strategy.zero 3: the {} workers of a stage gather parameters together, "
        "and "
        "do not all have as many of the {} leaves; use strategy.zero 2, or a strategy.leaves that {} divides",
        stages, options.workers, options.leaves, options.workers);
}

PipelineShape pipeline_shape(const TrainOptions& options) {
  PipelineShape shape;
  shape.schedule = options.schedule;
  shape.ranks = options.mesh.pipeline;
  shape.chunks = options.schedule == PipelineSchedule::kInterleaved ? static_cast<int>(options.chunks) : 1;
  const LeafSplit split = LeafSplit::search(options.leaves, static_cast<int>(options.workers));
  const int64_t leaves = options.in_rounds()
                             ? SumTree::leaves_in_rounds(options.leaves, options.workers, options.rank)
                             : split.range(static_cast<int>(options.rank)).size();
  shape.microbatches = leaves * (options.microbatches / options.leaves);
  return shape;
}

void require_tensor(const TrainPlans& plans, const TrainOptions& options) {
  const auto refuse = [&](const std::string& why) {
    throw UserError("strategy.tensor_leaves {}: {}", options.tensor_leaves, why);
  };
  if (!updates_elements(options.optimizer))
    refuse(
        fmt::format("leaves are parameters of their own, and {} needs norms or means of whole ones; use "
                    "adamw, adam, lion "
                    "or sgd",
                    options.optimizer.name));
  if (!plans.tables.empty())
    refuse(fmt::format(
        "gradients of table {} are lists of rows, which tensor ranks do not share; use a train.microbatch of "
        "more than {} ids, whose gradients are dense",
        plans.tables[0].name, plans.tables[0].table[0] / kRowsPerId));
  if (plans.whole.statistics_numel() > 0)
    refuse("running statistics of batch norms are not split into leaves; use strategy.tensor 1");
}

// Leaves follow each other from rank to rank.
ModelHolders::Places tensor_ranks(const LeafPieces& pieces, const MeshShape& mesh) {
  ModelHolders::Places ranks;
  if (mesh.tensor == 1) return ranks;
  for (const auto& [name, piece] : pieces)
    ranks[name] = static_cast<int>(piece.leaf / (piece.leaves / mesh.tensor));
  return ranks;
}

// A worker of a pipeline has the layers of its stages alone, and a tensor rank its leaves.
void take_part(TrainPlans& plans, const Model& model, const TrainOptions& options, SharedGraphs& shared) {
  const PipelineShape shape = pipeline_shape(options);
  if (shape.ranks > 1)
    plans.stages = shared.once(fmt::format("{} stages, {} leaves", shape.stages(), options.tensor_leaves),
                               [&] { return assign_stages(model.graph, shape.stages()); });
  ModelHolders::Readers copies;
  for (const auto& [name, stages] : plans.stages.copies)
    for (const int stage : stages)
      if (shape.rank_of(stage) != shape.rank_of(plans.stages.stage_of(name)))
        copies[name].insert(shape.rank_of(stage));
  plans.holders = ModelHolders(options.mesh, plans.stages.params, std::move(copies),
                               tensor_ranks(plans.pieces, options.mesh));
  plans.layout = plans.holders.layout_of(options.mesh_rank, plans.whole);
}

}  // namespace

TrainPlans plan_training(const Model& logical, Backend& backend, const TrainOptions& options,
                         SharedGraphs* shared) {
  if (options.microbatches < 1 || options.leaves < 1 || options.microbatches % options.leaves != 0)
    throw UserError("{} leaves do not divide {} microbatches", options.leaves, options.microbatches);
  const auto start = std::chrono::steady_clock::now();
  TrainPlans plans;
  const bool looked_at = shared != nullptr;
  SharedGraphs alone;
  if (shared == nullptr) shared = &alone;
  Plans all_plans(*shared, looked_at);
  const auto in_leaves = [&](const TensorShare& share) -> const LeafModel& {
    return shared->of_all().once(
        fmt::format("leaves {} of {}, rank {}", share.workers, share.leaves, share.index),
        [&] { return split_into_leaves(logical, share); });
  };
  // What all workers have together, and what this one has.
  const Model* all = &logical;
  if (options.tensor_leaves > 1) {
    const LeafModel& leaves = in_leaves({.leaves = options.tensor_leaves});
    all = &leaves.model;
    plans.pieces = leaves.pieces;
  }
  const Model* own = all;
  if (options.mesh.tensor > 1)
    own = &in_leaves({options.tensor_leaves, options.mesh.tensor,
                      options.mesh.coordinate(MeshAxis::kTensor, options.mesh_rank)})
               .model;
  const Model& model = *all;
  // The layout and the set of tables follow from the model alone, whatever other passes do.
  const Graph& differentiated =
      shared->of_all().once(fmt::format("differentiated, {} leaves", options.tensor_leaves),
                            [&] { return differentiate(model.graph); });
  PassOptions passes = options.passes;
  // A row that is caught up late would have to repeat the rounding of every step that it missed.
  if (!supports_row_updates(options.optimizer) || trained_dtype(model.graph) != DType::kF32)
    passes.disabled.emplace_back("row_gradients");
  const bool row_gradients = std::count(passes.disabled.begin(), passes.disabled.end(), "row_gradients") == 0;
  if (row_gradients)
    plans.tables = shared->of_all().once(fmt::format("tables, {} leaves", options.tensor_leaves),
                                         [&] { return row_tables(differentiated); });
  plans.whole = shared->of_all().once(
      fmt::format("layout, {} leaves{}", options.tensor_leaves, row_gradients ? ", lists of rows" : ""), [&] {
        return backward_order_layout(row_gradients ? make_row_gradients(differentiated, {}) : differentiated);
      });
  for (const GraphInput& input : model.graph.inputs())
    if (input.role == Role::kFrozen)
      plans.frozen.push_back({model.graph.name(input.value), model.graph.type(input.value)});
  plans.layout = plans.whole;
  require_stage(plans, options);
  if (options.tensor_leaves > 1) require_tensor(plans, options);
  require_route(backend, options);
  if (options.mesh.pipeline > 1) require_pipeline(plans, options);
  require_compression(backend, options);
  if (options.mesh.splits_model()) take_part(plans, model, options, *shared);
  if (const Ownership ownership = options.ownership(); plans.holders.is_split() || ownership.is_split())
    plans.square_stride = shared->once(
        fmt::format("squares of {} x {} x {}, {} owners, zero {}", options.mesh.pipeline, options.mesh.tensor,
                    options.mesh.data, ownership.workers(), options.zero),
        [&] {
          return SquareGather::stride(plans.whole, plans.holders, ownership,
                                      plans.holders.is_split() ? options.mesh.ranks() : ownership.workers());
        });
  passes.units = param_units(plans.layout, options.ownership());
  PartGraphs graphs(*own, backend, options, passes, *shared);
  if (options.mesh.pipeline > 1) {
    const PipelineShape shape = pipeline_shape(options);
    const int rank = options.mesh.coordinate(MeshAxis::kPipeline, options.mesh_rank);
    const std::string key = fmt::format("{} stages {}, {} {}", shape.stages(), name_of(shape.schedule),
                                        options.accumulates() ? "added" : "written", graphs.key());
    const auto plan = [&] {
      const StageCut& cut = shared->once(key, [&] { return cut_into_stages(graphs, plans.stages, options); });
      const auto scheduled = [&](int stage) -> const StageGraphs& {
        return shared->once(fmt::format("{}, stage {}", key, stage),
                            [&] { return schedule_stage(cut, stage, passes); });
      };
      return std::make_shared<PipelinePlans>(plan_pipeline(cut, scheduled, backend, passes, shape, rank));
    };
    // Stages that gather nothing are the same at every ZeRO stage.
    const std::string of = fmt::format("{}, rank {}, {} microbatches{}", key, rank, shape.microbatches,
                                       passes.units.empty() ? "" : ", in units");
    plans.pipeline = looked_at ? shared->once(of, plan) : plan();
  } else {
    // Of leaves nobody runs a microbatch alone (a diagnosis), and hashes are of the parameters that they are
    // of.
    if (options.tensor_leaves == 1) plans.units = passes.units;
    plan_backward(plans, graphs, all_plans, backend, options, passes);
  }
  passes.units.clear();
  plan_update(plans, model, all_plans, backend, options, passes, looked_at);
  plans.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return plans;
}

std::vector<const Plan*> TrainPlans::all() const {
  std::vector<const Plan*> there;
  for (const PlanHandle& plan : phases)
    if (plan) there.push_back(plan.get());
  for (const SlicePlans& slice : slices)
    for (const PlanHandle& plan : {slice.update, slice.average})
      if (plan) there.push_back(plan.get());
  if (pipeline)
    for (const Plan* plan : pipeline->all()) there.push_back(plan);
  return there;
}

int64_t TrainPlans::arena_bytes() const {
  int64_t most = 0;
  for (const Plan* plan : all()) most = std::max(most, plan->memory.arena_peak);
  return most;
}

}  // namespace lockstep
