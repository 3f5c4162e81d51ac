#include <fmt/format.h>

#include <algorithm>

#include "base/number_text.h"
#include "train/guard/causes.h"
#include "train/guard/lr_advice.h"

namespace lockstep {
namespace {

// Squares of values above this overflow fp32, in which blocks of the norm are summed.
constexpr double kSquareRootOfLargest = 1.8e19;
// A finite activation this large is far from what normalised layers hold; softmax is saturated long before.
constexpr double kLargeActivation = 1e4;

}  // namespace

std::optional<Cause> precision_cause(const TroubleFacts& facts) {
  const Inspection& seen = facts.inspection;
  if (!facts.bf16 || facts.trouble == Trouble::kNothingCounted || seen.bad_input || seen.parameter_was_bad)
    return std::nullopt;
  if (seen.fp32_finite == false) return std::nullopt;  // bf16 has not made what fp32 makes too
  Cause cause{"bf16 overflow or rounding", 10, {}, "", {"train.precision=fp32"}};
  if (seen.fp32_finite == true) {
    cause.points = 50;
    cause.evidence.push_back("the same microbatch with the same weights is finite in fp32");
  } else {
    cause.evidence.push_back(
        "bf16 has fp32's range, 3.4e38, but 8 significant bits: differences of large values are lost");
  }
  if (seen.first && seen.first->largest > kLargeActivation)
    cause.evidence.push_back(fmt::format("{} reaches {}, where neighbouring bf16 values are {} apart",
                                         seen.first->largest_value, short_number(seen.first->largest),
                                         short_number(seen.first->largest / 256, 2)));
  cause.remedy = "fp32 for some hundred steps: if that diverges too, precision is not the cause";
  return cause;
}

std::optional<Cause> norm_overflow_cause(const TroubleFacts& facts) {
  const Inspection& seen = facts.inspection;
  if (facts.trouble != Trouble::kNonFiniteGradient || seen.first || seen.bad_sum_of) return std::nullopt;
  if (seen.largest_gradient < kSquareRootOfLargest / 1e3) return std::nullopt;
  Cause cause{"gradient norm overflow", 90, {}, "", lr_advice(facts).sets};
  cause.evidence.push_back(
      fmt::format("every gradient is finite, the largest {}, but squares above {} overflow",
                  short_number(seen.largest_gradient), short_number(kSquareRootOfLargest)));
  cause.remedy =
      "clipping cannot help, it divides by the norm; a lower rate keeps the weights from getting here";
  return cause;
}

std::optional<Cause> no_clipping_cause(const TroubleFacts& facts) {
  if (facts.clip_norm > 0 || facts.trouble == Trouble::kNothingCounted || facts.inspection.bad_input)
    return std::nullopt;
  Cause cause{"no clipping", 8, {"train.clip_norm is 0: a step may be of any length"}, "", {}};
  if (facts.grad_norms.size() >= 3) {
    std::vector<double> sorted = facts.grad_norms;
    std::sort(sorted.begin(), sorted.end());
    const double median = sorted[(sorted.size() - 1) / 2];
    if (median > 0 && sorted.back() > 3 * median) {
      cause.points = 25;
      cause.evidence.push_back(
          fmt::format("the gradient norm reached {} in the last {} steps, its median is {}",
                      short_number(sorted.back()), sorted.size(), short_number(median)));
    }
  }
  cause.remedy =
      "clipping bounds a single bad step; it does not mend a rate that is too high (arXiv 1211.5063)";
  cause.sets.emplace_back("train.clip_norm=1.0");
  return cause;
}

std::optional<Cause> large_activations_cause(const TroubleFacts& facts) {
  const Inspection& seen = facts.inspection;
  if (!seen.first || seen.parameter_was_bad || seen.bad_input || seen.first->largest < kLargeActivation)
    return std::nullopt;
  Cause cause{"exploding activations", 30, {}, "", lr_advice(facts).sets};
  cause.evidence.push_back(fmt::format("before {} turned {}, {} already held {}", seen.first->value,
                                       short_number(seen.first->found), seen.first->largest_value,
                                       short_number(seen.first->largest)));
  if (seen.first->op.find("attention") != std::string::npos)
    cause.evidence.emplace_back("attention saturates when its logits grow (arXiv 2302.05442, 2303.06296)");
  cause.remedy = "weights have grown: a lower rate, more weight decay, or a norm before each block";
  return cause;
}

}  // namespace lockstep
