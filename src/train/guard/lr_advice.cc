#include "train/guard/lr_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/number_text.h"

namespace lockstep {
namespace {

struct Usual {
  double peak;
  std::string source;
};

Usual usual_peak(const std::string& optimizer, int64_t batch) {
  if (optimizer == "sgd")
    return {0.1 * std::max(1.0, static_cast<double>(batch) / 256), "0.1 per 256 samples, arXiv 1706.02677"};
  if (optimizer == "lion") return {3e-4, "3 to 10 times below AdamW's, arXiv 2302.06675"};
  if (optimizer == "lamb") return {1e-2, "arXiv 1904.00962"};
  if (optimizer == "adafactor") return {1e-2, "the relative step of arXiv 1804.04235"};
  return {1e-3, "Adam's default, arXiv 1412.6980"};
}

double factor_of(LrScaling scaling, double ratio) {
  switch (scaling) {
    case LrScaling::kLinear: return ratio;
    case LrScaling::kSqrt: return std::sqrt(ratio);
    case LrScaling::kNone: break;
  }
  return 1.0;
}

// Two significant digits, never above the value.
double round_down(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
  return std::floor(value / unit * (1 + 1e-9)) * unit;
}

}  // namespace

LrAdvice lr_advice(const TroubleFacts& facts) {
  const ScheduleSettings& schedule = facts.schedule;
  LrAdvice advice;
  advice.adaptive = facts.optimizer != "sgd";
  if (schedule.base_batch > 0)
    advice.batch_ratio =
        static_cast<double>(schedule.global_batch) / static_cast<double>(schedule.base_batch);
  const LrScaling rule = advice.adaptive ? LrScaling::kSqrt : LrScaling::kLinear;
  advice.rule_peak = schedule.base * factor_of(rule, advice.batch_ratio);
  Usual usual = usual_peak(facts.optimizer, schedule.global_batch);
  advice.usual_peak = usual.peak;
  advice.usual_source = std::move(usual.source);

  // With a smaller batch than base_batch the rules lower the rate; with the same they leave it.
  const bool above_rule = facts.peak_lr > 1.5 * advice.rule_peak;
  advice.safe_peak = std::min(facts.peak_lr, advice.usual_peak);
  if (above_rule) advice.safe_peak = std::min(advice.safe_peak, advice.rule_peak);
  // Nothing is out of the ordinary and yet it diverged: a third, as steps of a search by halves are too many.
  if (advice.safe_peak >= facts.peak_lr) advice.safe_peak = facts.peak_lr / 3;

  const LrScaling scaling = above_rule ? rule : schedule.scaling;
  if (scaling != schedule.scaling)
    advice.sets.push_back(
        fmt::format("train.lr.scaling={}", scaling == LrScaling::kSqrt ? "sqrt" : "linear"));
  const double factor = factor_of(scaling, advice.batch_ratio);
  if (schedule.base * factor > advice.safe_peak * (1 + 1e-9) && advice.safe_peak > 0)
    advice.sets.push_back(
        fmt::format("train.lr.base={}", short_number(round_down(advice.safe_peak / factor), 2)));
  return advice;
}

WarmupAdvice warmup_advice(const TroubleFacts& facts) {
  const int64_t total = facts.schedule.total_steps;
  const bool adaptive = facts.optimizer != "sgd";
  // Adafactor has no beta2 in the job; its decay comes near Adam's default within a run.
  const double beta2 = facts.beta2 > 0 ? facts.beta2 : 0.999;
  const auto settled = static_cast<int64_t>(std::ceil(2.0 / (1.0 - beta2) - 1e-6));
  if (adaptive && (total == 0 || 10 * settled <= total))
    return {settled, std::to_string(settled),
            fmt::format("2/(1 - beta2) = {} steps, arXiv 1910.04209", settled)};
  if (total == 0) return {500, "500", "a few hundred steps"};
  if (adaptive)
    return {(total + 9) / 10, "10%",
            fmt::format("2/(1 - beta2) = {} steps (arXiv 1910.04209), at most a tenth of the run", settled)};
  return {(total + 19) / 20, "5%", "5 of 90 epochs, arXiv 1706.02677"};
}

}  // namespace lockstep
