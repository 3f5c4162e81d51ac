#include "observe/metrics_reader.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "observe/record_json.h"

namespace lockstep {
namespace {

void add_line(Metrics& metrics, std::string_view line, const std::string& place) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object())
    throw UserError("{}: this line is no JSON object; it was damaged after it was written", place);
  const auto kind = object.find("kind");
  if (kind != object.end() && *kind == "step")
    metrics.steps.push_back(step_from_json(object, place));
  else if (kind != object.end() && *kind == "eval")
    metrics.evaluations.push_back(eval_from_json(object, place));
  else
    throw UserError("{}: the line's 'kind' is neither \"step\" nor \"eval\"", place);
}

}  // namespace

Metrics parse_metrics(std::string_view text, const std::string& name) {
  Metrics metrics;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t newline = text.find('\n');
    if (newline == std::string_view::npos) {
      metrics.torn = true;
      break;
    }
    add_line(metrics, text.substr(0, newline), fmt::format("{}:{}", name, number));
    text.remove_prefix(newline + 1);
  }
  return metrics;
}

Metrics read_metrics(const std::string& path) {
  // 16 GiB are about fifty million steps.
  return parse_metrics(read_file(path, int64_t{1} << 34), path);
}

std::vector<StepRecord> surviving_steps(const std::vector<StepRecord>& steps) {
  std::vector<StepRecord> surviving;
  for (const StepRecord& record : steps) {
    while (!surviving.empty() && surviving.back().step >= record.step) surviving.pop_back();
    surviving.push_back(record);
  }
  return surviving;
}

}  // namespace lockstep
