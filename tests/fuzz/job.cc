#include "fuzz/job.h"

#include "base/error.h"
#include "job/parse.h"
#include "job/print.h"
#include "job/resolve.h"

namespace lockstep::testing {
namespace {

std::vector<std::string> take_override(std::string_view& text) {
  constexpr std::string_view kOption = "\n--set ";
  const size_t at = text.rfind(kOption);
  if (at == std::string_view::npos) return {};
  std::vector<std::string> overrides = {std::string(text.substr(at + kOption.size()))};
  text = text.substr(0, at + 1);
  return overrides;
}

void check_resolve(const JobSpec& spec) {
  try {
    const ResolvedJob job = resolve(spec, {.parameters = 1, .train_samples = 1000});
    LOCKSTEP_CHECK(job.microbatches % job.leaves == 0, "{} leaves of {}", job.leaves, job.microbatches);
    LOCKSTEP_CHECK(job.microbatches * spec.train.microbatch == spec.train.global_batch,
                   "a part of the batch was lost");
  } catch (const UserError&) {
    // Values that do not go together.
  }
}

}  // namespace

bool check_job(std::string_view text) {
  const std::vector<std::string> overrides = take_override(text);
  JobSpec spec;
  try {
    spec = parse_job(text, "job.yaml", overrides);
  } catch (const UserError&) {
    return false;
  }
  // Outside of the try: what was printed must parse, and to the same.
  const std::string printed = to_yaml(spec);
  JobSpec again = parse_job(printed, "job.yaml");
  again.origins = spec.origins;
  LOCKSTEP_CHECK(to_yaml(again) == printed, "prints as {} and then as {}", printed, to_yaml(again));
  check_resolve(spec);
  return true;
}

}  // namespace lockstep::testing
