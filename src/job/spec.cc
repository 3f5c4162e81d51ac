#include "job/spec.h"

#include <fmt/format.h>

#include <cstdlib>

namespace lockstep {

std::string to_string(const StepSpan& span) {
  switch (span.unit) {
    case StepSpan::Unit::kFraction: {
      // As it was written, if the digits that people write are enough to read it back.
      const std::string text = fmt::format("{:.12g}", span.amount * 100);
      const bool enough = std::strtod(text.c_str(), nullptr) / 100 == span.amount;
      return enough ? text + "%" : fmt::format("{:.17g}%", span.amount * 100);
    }
    case StepSpan::Unit::kSamples: return fmt::format("{:.0f} samples", span.amount);
    case StepSpan::Unit::kSteps: break;
  }
  return fmt::format("{:.0f}", span.amount);
}

std::string JobSpec::where(std::string_view path) const {
  const auto found = origins.find(std::string(path));
  if (found == origins.end() || found->second.kind == Origin::Kind::kDefault) return file;
  return found->second.place();
}

bool JobSpec::is_default(std::string_view path) const {
  const auto found = origins.find(std::string(path));
  return found == origins.end() || found->second.kind == Origin::Kind::kDefault;
}

}  // namespace lockstep
