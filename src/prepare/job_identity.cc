#include "prepare/job_identity.h"

#include <algorithm>
#include <array>

#include "base/sha256.h"
#include "data/order/order.h"
#include "graph/text.h"
#include "job/fields.h"
#include "job/value.h"
#include "job/workers.h"
#include "model/hf/source.h"
#include "prepare/job_options.h"

namespace lockstep {
namespace {

// The sections and keys of the job file that decide bits as they are written. Those that act through several
// values at once (steps, learning rate, leaves) are added resolved.
constexpr auto kPaths = std::to_array<std::string_view>({"model.",
                                                         "train.freeze",
                                                         "train.train_only",
                                                         "train.lora.",
                                                         "data.seed",
                                                         "data.shuffle",
                                                         "data.train.weights",
                                                         "data.train.weight_changes",
                                                         "train.global_batch",
                                                         "train.microbatch",
                                                         "train.optimizer.",
                                                         "train.precision",
                                                         "train.moments",
                                                         "train.stochastic_rounding",
                                                         "train.clip_norm",
                                                         "train.ema",
                                                         "train.guard.",
                                                         "train.seed",
                                                         "strategy.tensor",
                                                         "strategy.reduce.order"});

bool decides_bits(std::string_view path) {
  return std::any_of(kPaths.begin(), kPaths.end(), [&](std::string_view entry) {
    return entry.ends_with('.') ? path.starts_with(entry) : path == entry;
  });
}

void add_schedule(Identity& identity, const Schedule& schedule, LrDecay decay) {
  identity.add("train.lr.decay", name_of(decay));
  identity.add("train.lr.peak", schedule.peak());
  identity.add("train.lr.warmup_steps", schedule.warmup_steps());
  identity.add("train.lr.min", schedule.settings().min);
  identity.add("train.lr.power", schedule.settings().power);
  // Where nothing falls to an end, a run may be made longer and goes on as it would have.
  if (schedule.fall_end() == schedule.fall_begin()) return;
  identity.add("train.lr.falls_from_step", schedule.fall_begin());
  identity.add("train.lr.falls_to_step", schedule.fall_end());
}

// The order of pushes decides bits too: it is in the run's log, and who repeats it has the same identity.
void add_mode(Identity& identity, const JobSpec& spec) {
  if (!trains_async(spec)) return;
  identity.add("strategy.mode", name_of(spec.strategy.mode));
  identity.add("strategy.staleness", spec.strategy.staleness);
  identity.add("strategy.servers", spec.strategy.servers);
}

// How gradients are added up, where it is not exactly and in the canonical tree; workers only where their
// number is not irrelevant.
void add_sums(Identity& identity, const JobSpec& spec, const ResolvedJob& job) {
  const ReduceSpec& reduce = spec.strategy.reduce;
  const bool alone = reduce.via == ReduceVia::kNone;
  if (alone) identity.add("strategy.reduce.via", name_of(reduce.via));
  set_codec(identity, reduce);
  if (has_feedback(reduce.compress))
    identity.add("strategy.reduce.warmup_steps", job.compress_warmup_steps.value_or(0));
  if (alone || reduce.order == SumOrder::kFast) identity.add("strategy.workers", job_workers(spec));
}

}  // namespace

void set_codec(Identity& identity, const ReduceSpec& reduce) {
  for (const char* name : {"strategy.reduce.compress", "strategy.reduce.topk", "strategy.reduce.rank"})
    identity.remove(name);
  if (reduce.compress != GradientCodec::kNone)
    identity.add("strategy.reduce.compress", name_of(reduce.compress));
  if (reduce.compress == GradientCodec::kTopk) identity.add("strategy.reduce.topk", reduce.topk);
  if (reduce.compress == GradientCodec::kPowersgd) identity.add("strategy.reduce.rank", reduce.rank);
}

Identity job_identity(const JobSpec& spec, const ResolvedJob& job, const Schedule& schedule,
                      const Model& model, const Data& data, const MachineArithmetic& machine) {
  Identity identity;
  identity.add("contract", kContractVersion);
  identity.add("architecture", machine.architecture);
  if (!machine.measured.empty()) identity.add("arithmetic", machine.measured);
  for (const Field& field : job_fields()) {
    // The task acts through the graph and the encoded labels; it is named where it is not what all tables
    // once had.
    if (field.path() == "model.task" && spec.model.task == LabelTask::kBinary) continue;
    // Paths: what lies there is named by its hash.
    if (field.path() == "model.hf" || field.path() == "train.lora.from") continue;
    // Without LoRA its defaults say nothing.
    if (field.path().starts_with("train.lora.") && !spec.train.lora.rank) continue;
    if (!decides_bits(field.path()) || !spec.origins.contains(std::string(field.path()))) continue;
    // How many workers share the leaves does not matter; all jobs name the one that there once was.
    if (field.path() == "strategy.tensor") {
      identity.add(field.path(), 1);
      continue;
    }
    if (const auto text = value_text(field, spec)) identity.add(field.path(), *text);
  }
  add_schedule(identity, schedule, spec.train.lr.decay);
  identity.add("strategy.leaves", job.leaves);
  if (const int64_t leaves = tensor_leaves(spec); leaves > 1) identity.add("strategy.tensor_leaves", leaves);
  if (spec.train.head_chunks > 1) identity.add("train.head_chunks", spec.train.head_chunks);
  add_sums(identity, spec, job);
  add_mode(identity, spec);
  // Where a rewind goes back to.
  if (spec.train.guard.non_finite == NonFinitePolicy::kRewind)
    identity.add("checkpoint.every", job.checkpoint_every.value_or(0));
  identity.add("data.train", data.train->fingerprint());
  identity.add("data.order_version", kOrderVersion);
  if (spec.model.source) identity.add("model.config", sha256(spec.model.source->config()));
  Sha256 graph;
  graph.update(to_text(model.graph));
  identity.add("model.graph", graph.finish());
  return identity;
}

}  // namespace lockstep
