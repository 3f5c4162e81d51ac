#include "train/guard/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/number_text.h"
#include "train/guard/causes.h"

namespace lockstep {
namespace {

// Where points are equal, the order here decides.
constexpr std::array<CauseRule, 9> kRules = {
    bad_input_cause, labels_masked_cause, norm_overflow_cause,     learning_rate_cause, unusual_samples_cause,
    warmup_cause,    precision_cause,     large_activations_cause, no_clipping_cause,
};

std::string headline_of(const TroubleFacts& facts) {
  const StepNumbers& numbers = facts.numbers;
  switch (facts.trouble) {
    case Trouble::kNothingCounted:
      return fmt::format("step {}: the loss counts nothing, all labels are masked", numbers.step);
    case Trouble::kNonFiniteLoss:
      return fmt::format("step {}: the loss is {}", numbers.step, short_number(numbers.loss));
    case Trouble::kNonFiniteGradient:
      return fmt::format("step {}: the gradient norm is {} at a loss of {}", numbers.step,
                         short_number(numbers.grad_norm), short_number(numbers.loss));
    default: break;
  }
  return fmt::format("step {}: a spike, loss {} and gradient norm {}", numbers.step,
                     short_number(numbers.loss), short_number(numbers.grad_norm));
}

std::string listed(const std::vector<std::string>& samples) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, samples.size()); ++i) text += (i == 0 ? "" : ", ") + samples[i];
  if (samples.size() > kShown) text += fmt::format(" and {} more", samples.size() - kShown);
  return text;
}

std::vector<std::string> findings_of(const TroubleFacts& facts) {
  const Inspection& seen = facts.inspection;
  std::vector<std::string> lines;
  if (seen.microbatch)
    lines.push_back(fmt::format("microbatch {} of {}, counted from 0", *seen.microbatch, facts.microbatches));
  else if (facts.trouble == Trouble::kNonFiniteLoss || facts.trouble == Trouble::kNonFiniteGradient)
    lines.push_back(fmt::format("no microbatch of the {} is bad by itself", facts.microbatches));
  if (!seen.samples.empty())
    lines.push_back(
        fmt::format("{} {}", seen.samples.size() == 1 ? "sample" : "samples", listed(seen.samples)));
  if (seen.parameter_was_bad) {
    lines.push_back(fmt::format("parameter {} was not finite before the step; the update before made it so",
                                seen.parameter.value_or("?")));
  } else if (seen.first) {
    lines.push_back(fmt::format("first bad value: {} = {} ({}), element {}, in {}", seen.first->value,
                                short_number(seen.first->found), seen.first->op, seen.first->element,
                                seen.first->in_backward ? "backward" : "forward"));
    if (seen.parameter) lines.push_back(fmt::format("nearest parameter: {}", *seen.parameter));
  } else if (seen.bad_sum_of) {
    lines.push_back(
        fmt::format("the gradient of {} overflowed in the sum over microbatches", *seen.bad_sum_of));
  }
  return lines;
}

}  // namespace

Diagnosis diagnose(const TroubleFacts& facts) {
  Diagnosis diagnosis{headline_of(facts), findings_of(facts), {}};
  for (const CauseRule rule : kRules)
    if (std::optional<Cause> cause = rule(facts)) diagnosis.causes.push_back(std::move(*cause));
  std::stable_sort(diagnosis.causes.begin(), diagnosis.causes.end(),
                   [](const Cause& a, const Cause& b) { return a.points > b.points; });
  return diagnosis;
}

}  // namespace lockstep
