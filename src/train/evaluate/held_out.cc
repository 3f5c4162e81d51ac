#include "train/evaluate/held_out.h"

#include <cmath>

#include "base/log.h"
#include "observe/record_json.h"

namespace lockstep {
namespace {

EvalRecord record_of(const EvalResult& result, int64_t step) {
  EvalRecord record;
  record.step = step;
  record.loss = result.loss;
  record.perplexity = result.perplexity;
  record.accuracy = result.accuracy;
  record.macro_f1 = result.macro_f1;
  record.log_loss = result.log_loss;
  record.auc = result.auc;
  record.pr_auc = result.pr_auc;
  record.best_f1 = result.f1;
  record.best_f1_threshold = result.f1_threshold;
  record.mae = result.mae;
  record.rmse = result.rmse;
  record.r2 = result.r2;
  record.samples = result.samples;
  record.seconds = result.seconds;
  return record;
}

nlohmann::json to_json(const std::optional<EvalRecord>& record) {
  return record ? nlohmann::json::parse(to_json_line(*record)) : nlohmann::json();
}

std::optional<EvalRecord> record_from(const nlohmann::json& json) {
  if (json.is_null()) return std::nullopt;
  return eval_from_json(json, "the checkpoint's evaluation");
}

}  // namespace

HeldOut::HeldOut(HeldOutOptions options, std::unique_ptr<Evaluator> evaluator)
    : options_(std::move(options)),
      early_stop_(options_.stop_metric, options_.patience, options_.min_delta),
      evaluator_(std::move(evaluator)) {}

EvalRecord HeldOut::evaluate(TrainStep& train, int64_t step, const std::function<void()>& after_batch) {
  const TrainState& state = train.state();
  const EvalResult result = evaluator_->run(
      *options_.source, [&](std::string_view name) { return state.evaluated(name); }, after_batch,
      options_.reading);
  EvalRecord record = record_of(result, step);
  const double value = metric_value(result, options_.metric);
  record.best = std::isfinite(value) && (!best_value_ || is_better(options_.metric, value, *best_value_));
  if (record.best) {
    best_value_ = value;
    best_ = record;
  }
  // What cannot be measured on these records says nothing about progress.
  if (!is_undefined(result, options_.stop_metric))
    early_stop_.update(metric_value(result, options_.stop_metric));
  warn_if_undefined(result);
  last_ = record;
  return record;
}

void HeldOut::warn_if_undefined(const EvalResult& result) {
  for (const std::string& metric : {options_.metric, options_.stop_metric}) {
    if (warned_ || !is_undefined(result, metric)) continue;
    log_warn(
        "{} is undefined on the records that are held out: their labels are all alike; it can choose no "
        "checkpoint and end no run",
        metric);
    warned_ = true;
  }
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
