#include <fmt/format.h>

#include <algorithm>

#include "base/number_text.h"
#include "train/guard/causes.h"

namespace lockstep {
namespace {

const char* const kSkip = "train.guard.non_finite=skip";

}  // namespace

std::optional<Cause> bad_input_cause(const TroubleFacts& facts) {
  const auto& bad = facts.inspection.bad_input;
  if (!bad) return std::nullopt;
  Cause cause{"bad input", 100, {}, "", {kSkip}};
  const std::string where =
      bad->record.empty() ? fmt::format("row {} of the microbatch", bad->row) : bad->record;
  cause.evidence.push_back(fmt::format("column {} of {} is {}", bad->column, where, bad->value));
  cause.remedy = "mend or leave out the record, or skip the steps that hold such records";
  return cause;
}

std::optional<Cause> labels_masked_cause(const TroubleFacts& facts) {
  if (facts.trouble != Trouble::kNothingCounted) return std::nullopt;
  Cause cause{"all labels masked", 100, {}, "", {kSkip}};
  cause.evidence.push_back(
      fmt::format("of the {} samples of this step the loss counts none: every label is the ignored one, -100",
                  facts.schedule.global_batch));
  cause.remedy = "check how labels are made; a batch without any can be skipped";
  return cause;
}

// A spike is often state times data: the same records from other weights do no harm (PaLM, arXiv 2204.02311).
std::optional<Cause> unusual_samples_cause(const TroubleFacts& facts) {
  if (facts.trouble != Trouble::kSpikeLoss && facts.trouble != Trouble::kSpikeGradient) return std::nullopt;
  const std::vector<double>& losses = facts.inspection.losses;
  if (losses.size() < 3 || !facts.inspection.microbatch) return std::nullopt;
  std::vector<double> sorted = losses;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[(sorted.size() - 1) / 2];
  if (!(median > 0 && sorted.back() > 3 * median)) return std::nullopt;
  Cause cause{"unusual samples", 45, {}, "", {kSkip}};
  cause.evidence.push_back(fmt::format("microbatch {} has a loss of {}, {} times the median of the {}, {}",
                                       *facts.inspection.microbatch, short_number(sorted.back()),
                                       short_number(sorted.back() / median), losses.size(),
                                       short_number(median)));
  cause.remedy = "look at the samples named; a single such batch can be skipped (arXiv 2204.02311)";
  return cause;
}

}  // namespace lockstep
