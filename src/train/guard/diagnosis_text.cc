// The two forms in which a diagnosis is given out.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/number_text.h"
#include "train/guard/diagnose.h"

namespace lockstep {
namespace {

using nlohmann::json;

json number(double value) { return std::isfinite(value) ? json(value) : json(short_number(value)); }

json numbers(const std::vector<double>& values) {
  json list = json::array();
  for (const double value : values) list.push_back(number(value));
  return list;
}

template <typename T>
json optional(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json first_of(const Inspection& seen) {
  if (!seen.first) return {};
  const NonFiniteValue& first = *seen.first;
  return {{"value", first.value},
          {"op", first.op},
          {"element", first.element},
          {"found", number(first.found)},
          {"in", first.in_backward ? "backward" : "forward"},
          {"largest_before", first.largest},
          {"largest_before_in", first.largest_value}};
}

json bad_input_of(const Inspection& seen) {
  if (!seen.bad_input) return {};
  const BadInput& bad = *seen.bad_input;
  return {{"column", bad.column}, {"row", bad.row}, {"record", bad.record}, {"value", bad.value}};
}

}  // namespace

std::string to_text(const Diagnosis& diagnosis) {
  std::string text = diagnosis.headline + "\n";
  for (const std::string& line : diagnosis.findings) text += "  " + line + "\n";
  if (!diagnosis.causes.empty()) text += "likely causes, the likeliest first:\n";
  for (size_t i = 0; i < diagnosis.causes.size(); ++i) {
    const Cause& cause = diagnosis.causes[i];
    text += fmt::format("  {}. {}\n", i + 1, cause.name);
    for (const std::string& sentence : cause.evidence) text += "     " + sentence + "\n";
    text += "     try: " + cause.remedy + "\n";
    if (cause.sets.empty()) continue;
    text += "         ";
    for (const std::string& set : cause.sets) text += " --set " + set;
    text += "\n";
  }
  return text;
}

json to_json(const TroubleFacts& facts, const Diagnosis& diagnosis) {
  const Inspection& seen = facts.inspection;
  json causes = json::array();
  for (const Cause& cause : diagnosis.causes)
    causes.push_back({{"name", cause.name},
                      {"points", cause.points},
                      {"evidence", cause.evidence},
                      {"remedy", cause.remedy},
                      {"set", cause.sets}});
  return {{"step", facts.numbers.step},
          {"trouble", name_of(facts.trouble)},
          {"headline", diagnosis.headline},
          {"findings", diagnosis.findings},
          {"loss", number(facts.numbers.loss)},
          {"grad_norm", number(facts.numbers.grad_norm)},
          {"counted", facts.numbers.count},
          {"lr", facts.lr},
          {"microbatch", optional(seen.microbatch)},
          {"microbatches", facts.microbatches},
          {"samples", seen.samples},
          {"first_bad_value", first_of(seen)},
          {"parameter", optional(seen.parameter)},
          {"parameter_was_bad", seen.parameter_was_bad},
          {"gradient_sum_overflowed_of", optional(seen.bad_sum_of)},
          {"bad_input", bad_input_of(seen)},
          {"fp32_finite", optional(seen.fp32_finite)},
          {"microbatch_losses", numbers(seen.losses)},
          {"losses_before", numbers(facts.losses)},
          {"grad_norms_before", numbers(facts.grad_norms)},
          {"causes", causes}};
}

}  // namespace lockstep
