#include <fmt/format.h>

#include <algorithm>

#include "base/number_text.h"
#include "train/guard/causes.h"
#include "train/guard/lr_advice.h"

namespace lockstep {
namespace {

std::string times(double ratio) { return short_number(ratio, ratio < 10 ? 2 : 3); }

void add(Cause& cause, int points, std::string sentence) {
  cause.points += points;
  cause.evidence.push_back(std::move(sentence));
}

}  // namespace

std::optional<Cause> learning_rate_cause(const TroubleFacts& facts) {
  // What came in bad, or was not there at all, no rate has made.
  if (facts.trouble == Trouble::kNothingCounted || facts.inspection.bad_input) return std::nullopt;
  const LrAdvice advice = lr_advice(facts);
  const ScheduleSettings& schedule = facts.schedule;
  Cause cause{"learning rate too high", 5, {}, "", advice.sets};

  const double excess = facts.lr / advice.usual_peak;
  if (excess > 1.5)
    add(cause,
        excess >= 10  ? 60
        : excess >= 3 ? 40
                      : 20,
        fmt::format("{} at this step is {} times the upper end of what {} is commonly used with, {} ({})",
                    short_number(facts.lr), times(excess), facts.optimizer, short_number(advice.usual_peak),
                    advice.usual_source));
  const double above = facts.peak_lr / advice.rule_peak;
  if (above > 1.5)
    add(cause, above >= 2 ? 30 : 20,
        fmt::format(
            "the peak {} is {} times what the {} rule for {} makes of {} at batch {} for batch {}: {} "
            "(arXiv {})",
            short_number(facts.peak_lr), times(above), advice.adaptive ? "sqrt" : "linear", facts.optimizer,
            short_number(schedule.base), schedule.base_batch, schedule.global_batch,
            short_number(advice.rule_peak), advice.adaptive ? "2205.10287" : "1706.02677"));
  if (facts.losses.size() >= 3) {
    const auto least = std::min_element(facts.losses.begin(), facts.losses.end());
    if (facts.losses.back() > 1.5 * *least && *least > 0)
      add(cause, 15,
          fmt::format("the loss had risen from {} to {} in the {} steps before", short_number(*least),
                      short_number(facts.losses.back()), facts.losses.end() - least));
  }
  if (facts.inspection.parameter_was_bad)
    add(cause, 30,
        fmt::format("{} was not finite before this step: the update before overflowed",
                    facts.inspection.parameter.value_or("a parameter")));
  if (cause.evidence.empty())
    cause.evidence.push_back(
        fmt::format("none but that it is the commonest cause: {} at this step is within what is usual",
                    short_number(facts.lr)));
  cause.remedy =
      fmt::format("a peak of {} instead of {}", short_number(advice.safe_peak), short_number(facts.peak_lr));
  return cause;
}

std::optional<Cause> warmup_cause(const TroubleFacts& facts) {
  if (facts.trouble == Trouble::kNothingCounted || facts.inspection.bad_input) return std::nullopt;
  const WarmupAdvice advice = warmup_advice(facts);
  const int64_t present = facts.schedule.warmup_steps;
  // Long after the warm-up that should have been, its absence explains nothing.
  if (2 * present >= advice.steps || facts.numbers.step > 2 * advice.steps) return std::nullopt;
  Cause cause{"warm-up missing", 35, {}, "", {}};
  if (present > 0) cause = {"warm-up too short", 20, {}, "", {}};
  cause.evidence.push_back(
      present == 0 ? fmt::format("the first step already has the whole rate, {}", short_number(facts.peak_lr))
                   : fmt::format("the peak is reached after {} step{}", present, present == 1 ? "" : "s"));
  cause.evidence.push_back(fmt::format("the trouble came at step {}; a warm-up would be {} steps long ({})",
                                       facts.numbers.step, advice.steps, advice.source));
  cause.remedy = fmt::format("a warm-up of {} steps", advice.steps);
  cause.sets.push_back("train.lr.warmup=" + advice.value);
  return cause;
}

}  // namespace lockstep
