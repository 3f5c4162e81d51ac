#include "run/held_out.h"

#include <cmath>

#include "base/error.h"
#include "observe/record_json.h"
#include "prepare/job_data.h"

namespace lockstep {
namespace {

EvalRecord record_of(const EvalResult& result, int64_t step) {
  EvalRecord record;
  record.step = step;
  record.loss = result.loss;
  record.perplexity = result.perplexity;
  record.accuracy = result.accuracy;
  record.auc = result.auc;
  record.best_f1 = result.f1;
  record.best_f1_threshold = result.f1_threshold;
  record.samples = result.samples;
  record.seconds = result.seconds;
  return record;
}

void check(const JobSpec& spec, const char* path, Task task, const std::string& metric) {
  try {
    check_metric(task, metric);
  } catch (const UserError& error) {
    throw UserError("{}: {}: {}", spec.where(path), path, error.what());
  }
}

nlohmann::json to_json(const std::optional<EvalRecord>& record) {
  return record ? nlohmann::json::parse(to_json_line(*record)) : nlohmann::json();
}

std::optional<EvalRecord> record_from(const nlohmann::json& json) {
  if (json.is_null()) return std::nullopt;
  return eval_from_json(json, "the checkpoint's evaluation");
}

}  // namespace

HeldOut::HeldOut(const JobParts& parts, Backend& backend, const StreamOptions& reading, bool evaluates)
    : source_(parts.data.eval),
      reading_(reading),
      exists_(source_ || evaluates_apart(parts.spec)),
      metric_(name_of(parts.spec.train.eval.metric)),
      stop_metric_(name_of(parts.resolved.early_stop_metric)),
      early_stop_(stop_metric_, parts.spec.train.early_stop.patience, parts.spec.train.early_stop.min_delta) {
  if (!evaluates) return;
  if (!source_) {
    const char* asks = parts.spec.train.eval.every                ? "train.eval.every"
                       : parts.spec.train.early_stop.patience > 0 ? "train.early_stop.patience"
                                                                  : nullptr;
    if (asks != nullptr)
      throw UserError("{}: {} needs records to evaluate on; write data.hold_out: 0.1, or data.eval",
                      parts.spec.where(asks), asks);
    return;
  }
  evaluator_ = std::make_unique<Evaluator>(
      [&](int64_t batch) { return build_job_evaluation(parts.spec, parts.inputs, batch); }, backend,
      parts.options.passes, parts.spec.train.microbatch, source_->size());
  check(parts.spec, "train.eval.metric", evaluator_->task(), metric_);
  check(parts.spec, "train.early_stop.metric", evaluator_->task(), stop_metric_);
}

EvalRecord HeldOut::evaluate(TrainStep& train, int64_t step, const std::function<void()>& after_batch) {
  const TrainState& state = train.state();
  const EvalResult result = evaluator_->run(
      *source_, [&](std::string_view name) { return state.evaluated(name); }, after_batch, reading_);
  EvalRecord record = record_of(result, step);
  const double value = metric_value(result, metric_);
  record.best = std::isfinite(value) && (!best_value_ || is_better(metric_, value, *best_value_));
  if (record.best) {
    best_value_ = value;
    best_ = record;
  }
  early_stop_.update(metric_value(result, stop_metric_));
  last_ = record;
  return record;
}

nlohmann::json HeldOut::state() const {
  nlohmann::json state = {{"last", to_json(last_)}, {"best", to_json(best_)}, {"stop", early_stop_.state()}};
  if (best_value_) state["best_value"] = *best_value_;
  return state;
}

void HeldOut::restore(const nlohmann::json& state) {
  last_ = record_from(state.at("last"));
  best_ = record_from(state.at("best"));
  best_value_.reset();
  if (state.contains("best_value")) best_value_ = state["best_value"].get<double>();
  early_stop_.restore(state.at("stop"));
}

}  // namespace lockstep
