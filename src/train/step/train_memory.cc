#include "train/step/train_memory.h"

#include <algorithm>

#include "base/error.h"
#include "comm/leaf_split.h"
#include "comm/leaf_stack.h"
#include "train/step/step_inputs.h"
#include "train/sums/owned_gathers.h"
#include "train/sums/power_sums.h"
#include "train/sums/round_sums.h"
#include "train/sums/topk_sums.h"
#include "train/sums/unit_gathers.h"
#include "train/update/update.h"

namespace lockstep {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kId = sizeof(int32_t);
// Lists of M microbatches' rows while the last two are merged: both, the result, and the merge's own.
constexpr int64_t kListCopies = 3;

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

int64_t list_bytes(const RowTable& table) { return table.ids * (kId + table.table[1] * kFloat); }

// The most partial sums that a worker holds at once.
int64_t slot_count(const TrainOptions& options) {
  if (options.reduce.order == SumOrder::kFast) return 1;
  if (options.workers == 1) return stack_depth({0, options.leaves}, options.leaves);
  const LeafSplit split = LeafSplit::search(options.leaves, static_cast<int>(options.workers));
  int64_t most = 0;
  for (int rank = 0; rank < split.ranks(); ++rank)
    most = std::max(most, stack_depth(split.range(rank), options.leaves));
  return most;
}

// The most leaves that a worker has.
int64_t leaf_count(const TrainOptions& options) {
  if (options.workers == 1) return options.leaves;
  const LeafSplit split = LeafSplit::search(options.leaves, static_cast<int>(options.workers));
  int64_t most = 0;
  for (int rank = 0; rank < split.ranks(); ++rank) most = std::max(most, split.range(rank).size());
  return most;
}

// Gradients on their way in coded form: a bucket of every partial sum, or the choice of all of them.
int64_t coded_bytes(const TrainPlans& plans, const TrainOptions& options) {
  const ReduceOptions& reduce = options.reduce;
  if (reduce.codec == GradientCodec::kNone) return 0;
  const int64_t all = plans.layout.numel();
  const int64_t bucket =
      options.workers == 1
          ? all
          : Buckets(plans.layout, reduce.bucket_bytes, true, reduce.least_bucket).bytes() / kFloat;
  if (reduce.codec == GradientCodec::kTopk) {
    const double share = TopkShare(reduce).most();
    return TopkSums::index_bytes(share, all) + slot_count(options) * TopkSums::value_bytes(share, bucket);
  }
  if (reduce.codec == GradientCodec::kPowersgd) {
    const PowerSizes sizes = PowerRank(reduce).sizes(plans.layout);
    return kFloat * (slot_count(options) * std::max({sizes.chosen, sizes.first, sizes.second}) +
                     sizes.chosen + sizes.first + leaf_count(options) * sizes.second);
  }
  if (options.workers == 1) return 0;
  const LeafSplit split = LeafSplit::search(options.leaves, static_cast<int>(options.workers));
  const SumType type = reduce.codec == GradientCodec::kInt8 ? SumType::kInt8 : SumType::kBF16;
  return split.max_partials() * elements_in(type, bucket) * size_of(type);
}

int64_t gradient_bytes(const TrainPlans& plans, const TrainOptions& options, MemoryKind device) {
  const Ownership ownership = options.ownership();
  int64_t bytes = 0;
  if (plans.square_stride > 0)
    bytes = SquareGather::planned_bytes(
        plans.whole, plans.square_stride,
        plans.holders.is_split() ? plans.holders.mesh().ranks() : ownership.workers(), device);
  if (options.in_rounds()) {
    if (plans[Phase::kAccumulate] || plans.pipeline) bytes += plans.layout.sums_bytes();
    if (ownership.splits_params()) bytes += UnitGathers::planned_bytes(plans.layout, ownership, device);
    return bytes +
           RoundSums::planned_bytes(plans.layout, ownership, options.owned_leaves(), options.leaves, device);
  }
  bytes += slot_count(options) * plans.layout.sums_bytes() + coded_bytes(plans, options);
  for (const RowTable& table : plans.tables) {
    bytes += list_bytes(table) * (options.microbatches == 1 ? 1 : kListCopies * options.microbatches);
    if (plans[Phase::kAccumulate]) bytes += list_bytes(table);
  }
  return bytes;
}

int64_t input_bytes(const TrainPlans& plans, MemoryKind memory) {
  return kLrHistory * kFloat +
         StepInputs::planned_bytes(plans.pipeline ? *plans.pipeline->inputs : plans.backward().graph, memory);
}

std::string row(std::string_view name, int64_t bytes, std::string_view note = "") {
  return fmt::format("  {:<20}{:>12.2f}{}{}\n", name, mib(bytes), note.empty() ? "" : "   ", note);
}

// That the plan of a microbatch counts, and does not gather.
int64_t external_params(const TrainPlans& plans) {
  const Graph& graph = plans.backward().graph;
  int64_t bytes = 0;
  for (const GraphInput& input : graph.inputs())
    if (input.role == Role::kParam || input.role == Role::kFrozen) bytes += graph.type(input.value).bytes();
  return bytes;
}

std::string gradient_note(const TrainPlans& plans, const TrainMemory& memory) {
  if (memory.stage < 2) return "";
  if (plans.pipeline) return "a leaf as a whole, sums of leaves in parts";
  if (plans[Phase::kAccumulate]) return "a leaf of several microbatches as a whole, sums of leaves in parts";
  return "sums of leaves in parts; a microbatch's pass through the arena";
}

}  // namespace

int64_t residual_bytes(const FlatLayout& layout, const TrainOptions& options) {
  return leaf_count(options) * layout.numel() * kFloat;
}

TrainMemory train_memory(const TrainPlans& plans, const TrainOptions& options, MemoryKind device) {
  TrainMemory memory;
  const Ownership ownership = options.ownership();
  memory.holders = ownership.owners();
  memory.stage = ownership.stage();
  memory.workers = ownership.is_split() ? ownership.workers() : 1;
  // Of a buffer beside the parameters.
  const auto part = [&](int64_t bytes) {
    if (!ownership.is_split()) return bytes / memory.holders;
    return bytes / std::max<int64_t>(1, plans.layout.numel()) * numel(ownership.owned(plans.layout));
  };
  const int64_t whole = plans.layout.numel() * size_of(plans.layout.dtype());
  const int64_t flat = ownership.splits_params() ? part(whole) : whole / memory.holders;
  int64_t tables = 0;
  int64_t rows = 0;
  for (const RowTable& table : plans.tables) {
    tables += table.table.numel() * kFloat;
    rows += table.table[0];
  }
  for (const FrozenParam& param : plans.frozen)
    if (plans.holders.holds(options.mesh_rank, param.name)) memory.parameters += param.type.bytes();
  for (const FlatEntry& entry : plans.whole.entries())
    if (plans.holders.has_copy(options.mesh_rank, entry.name))
      memory.parameters += entry.shape.numel() * size_of(plans.whole.dtype());
  memory.parameters += flat + tables + plans.layout.statistics_numel() * kFloat;
  if (options.ema > 0) memory.averages = part(plans.layout.numel() * kFloat);
  for (const StateBuffer& buffer : optimizer_state(plans.layout, options.optimizer))
    memory.state += part(buffer.bytes());
  if (options.optimizer.offloaded) {
    memory.offloaded = memory.averages + memory.state;
    memory.averages = memory.state = 0;
  }
  if (options.ema > 0) memory.averages += tables;
  memory.state += 2 * tables + rows * kId;  // moments, and the step that each row has reached
  memory.gradients = gradient_bytes(plans, options, device);
  if (has_feedback(options.reduce.codec)) memory.residuals = residual_bytes(plans.layout, options);
  memory.inputs = input_bytes(plans, device);
  if (plans.pipeline) memory.in_flight = plans.pipeline->in_flight_bytes();
  memory.arena = plans.arena_bytes();
  KernelMemory kernels;
  for (const Plan* plan : plans.all()) {
    kernels += plan->memory.kernels;
    memory.communication += plan->memory.communication;
    memory.arena_lower_bound =
        std::max(memory.arena_lower_bound, plan->memory.packed_lower_bound - plan->memory.region_bytes);
  }
  memory.kernels = kernels.bytes();
  return memory;
}

std::string memory_table(const TrainPlans& plans, const TrainMemory& memory, const BesideSteps& beside) {
  const std::vector<const Plan*> all = plans.all();
  const Plan& largest =
      plans.pipeline
          ? **std::ranges::max_element(all, {}, [](const Plan* plan) { return plan->memory.arena_peak; })
          : plans.backward();
  const auto& fullest = largest.memory.at_peak;
  const auto at_peak = [&](MemoryCategory category) { return mib(fullest[static_cast<size_t>(category)]); };
  std::string out = "memory of a worker (MiB)\n";
  const bool split = memory.stage > 0;
  std::string once;
  if (memory.holders > 1)
    once = fmt::format("{}held once for the {} workers of a host",
                       split ? "" : "and optimizer state: ", memory.holders);
  const std::string pieces =
      split ? fmt::format("of {} workers (ZeRO-{}){}", memory.workers, memory.stage,
                          plans.tables.empty() ? "" : "; of tables with row gradients all")
            : "";
  if (!plans.units.empty())
    once = fmt::format(
        "a part {}; gathered in {} units, at the peak {:.2f} of the arena", pieces, plans.units.size(),
        mib(fullest[static_cast<size_t>(MemoryCategory::kParameters)] - external_params(plans)));
  out += row("parameters", memory.parameters, once);
  if (memory.averages > 0) out += row("moving averages", memory.averages, split ? "a part " + pieces : "");
  out += row("optimizer state", memory.state, split ? "a part " + pieces : "");
  if (memory.offloaded > 0)
    out += row("in the host's memory", memory.offloaded, "optimizer state (offload), not counted below");
  out += row("gradients", memory.gradients, gradient_note(plans, memory));
  if (memory.residuals > 0)
    out += row("residuals", memory.residuals, "of gradients: what each of its leaves has not sent yet");
  out += row("inputs", memory.inputs);
  if (memory.in_flight > 0) {
    int64_t slots = 0;
    for (const StagePlans& stage : plans.pipeline->stages) slots = std::max(slots, stage.slots);
    out += row("in flight", memory.in_flight,
               fmt::format("saved activations of up to {} microbatches (pipeline, stage {})", slots,
                           plans.pipeline->stages[0].stage));
  }
  out +=
      row("arena", memory.arena,
          fmt::format("saved activations {:.2f}, scratch {:.2f}, workspace {:.2f}, partly in the gradients' "
                      "bytes",
                      at_peak(MemoryCategory::kActivations), at_peak(MemoryCategory::kScratch),
                      at_peak(MemoryCategory::kWorkspace)));
  out += row("kernels", memory.kernels);
  if (memory.communication > 0) out += row("communication", memory.communication, "sums over tensor ranks");
  if (beside.evaluation > 0) out += row("evaluation", beside.evaluation);
  if (beside.checkpoints > 0) out += row("checkpoints", beside.checkpoints, "on their way to the disk");
  if (beside.program > 0) out += row("program", beside.program, "and its libraries");
  const int64_t planned = memory.bytes() + beside.bytes();
  const int64_t bound = memory.lower_bound() + beside.bytes();
  out += row(
      "planned peak", planned,
      fmt::format(
          "lower bound {:.2f} (+{:.1f} %)", mib(bound),
          100.0 * (static_cast<double>(planned) / static_cast<double>(std::max<int64_t>(bound, 1)) - 1.0)));
  return out;
}

}  // namespace lockstep
