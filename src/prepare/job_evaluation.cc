#include "prepare/job_evaluation.h"

#include "base/error.h"
#include "prepare/job_data.h"
#include "train/evaluate/evaluation_units.h"

namespace lockstep {
namespace {

void check(const JobSpec& spec, const char* path, Task task, const std::string& metric) {
  try {
    check_metric(task, metric);
  } catch (const UserError& error) {
    throw UserError("{}: {}: {}", spec.where(path), path, error.what());
  }
}

void require_nothing_watched(const JobSpec& spec) {
  const char* asks = spec.train.eval.every                ? "train.eval.every"
                     : spec.train.early_stop.patience > 0 ? "train.early_stop.patience"
                                                          : nullptr;
  if (asks != nullptr)
    throw UserError("{}: {} needs records to evaluate on; write data.hold_out: 0.1, or data.eval",
                    spec.where(asks), asks);
}

// Whether anybody evaluates: one of several workers may be the only one to have opened the records.
bool has_held_out(const JobParts& parts) { return parts.data.eval || evaluates_apart(parts.spec); }

}  // namespace

void require_evaluation(const JobParts& parts) {
  if (!has_held_out(parts)) return require_nothing_watched(parts.spec);
  const Task task = parts.model.task;
  check(parts.spec, "train.eval.metric", task, std::string(name_of(parts.spec.train.eval.metric)));
  check(parts.spec, "train.early_stop.metric", task, std::string(name_of(parts.resolved.early_stop_metric)));
}

HeldOut job_held_out(const JobParts& parts, Backend& backend, const StreamOptions& reading, bool evaluates,
                     const TrainState& state) {
  const JobSpec& spec = parts.spec;
  HeldOutOptions options{.exists = has_held_out(parts),
                         .source = parts.data.eval,
                         .reading = reading,
                         .metric = std::string(name_of(spec.train.eval.metric)),
                         .stop_metric = std::string(name_of(parts.resolved.early_stop_metric)),
                         .patience = spec.train.early_stop.patience,
                         .min_delta = spec.train.early_stop.min_delta};
  std::unique_ptr<Evaluator> evaluator;
  if (evaluates && options.source) {
    const auto build = [&](int64_t batch) { return build_job_evaluation(spec, parts.inputs, batch); };
    const int64_t batch = spec.train.microbatch;
    PassOptions passes = parts.options.passes;
    if (state.is_split())
      passes.units = evaluation_units(
          build(batch).graph, [&](std::string_view name) { return state.evaluated_tensor(name).is_whole(); },
          parts.options.reduce.bucket_bytes);
    evaluator = std::make_unique<Evaluator>(build, backend, passes, batch, options.source->size());
  }
  return {std::move(options), std::move(evaluator)};
}

}  // namespace lockstep
