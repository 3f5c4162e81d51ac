#include "observe/run_view.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "observe/metrics_reader.h"
#include "observe/run_statistics.h"
#include "observe/summary.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void require_run(const std::string& folder) {
  std::error_code ignored;
  if (!exists(folder)) throw UserError("{}: there is no such folder", folder);
  if (!fs::is_directory(folder, ignored))
    throw UserError("{} is no folder; give the folder that the job's `output` names", folder);
  if (!exists(folder + "/metrics.jsonl") && !exists(folder + "/summary.json"))
    throw UserError(
        "{} is no run: it has neither metrics.jsonl nor summary.json; give the folder that the job's "
        "`output` names",
        folder);
}

std::vector<EvalRecord> surviving_evaluations(const Metrics& metrics, int64_t last_step) {
  std::vector<EvalRecord> surviving;
  for (const EvalRecord& record : metrics.evaluations) {
    while (!surviving.empty() && surviving.back().step >= record.step) surviving.pop_back();
    if (record.step <= last_step) surviving.push_back(record);
  }
  return surviving;
}

RunSummary summary_so_far(const RunView& run, const Metrics& metrics) {
  RunSummary summary;
  summary.status = "unfinished";
  RunStatistics statistics;
  for (const StepRecord& record : metrics.steps) {
    statistics.add(record);
    summary.peak_lr = std::max(summary.peak_lr, record.lr);
  }
  statistics.fill(summary);
  for (const StepRecord& record : run.steps) {
    if (record.action == kSkipped) ++summary.skipped_steps;
    if (record.action == kApplied) summary.final_loss = record.loss;
  }
  if (!run.steps.empty()) {
    summary.steps = run.steps.back().step;
    summary.global_batch = run.steps.back().samples;
  }
  if (!run.evaluations.empty()) summary.final_eval = run.evaluations.back();
  for (const EvalRecord& record : run.evaluations)
    if (record.best) summary.best_eval = record;
  return summary;
}

std::vector<std::pair<std::string, std::string>> read_identity(const std::string& path) {
  const nlohmann::json list = nlohmann::json::parse(read_file(path, int64_t{1} << 24), nullptr, false);
  const auto is_text_pair = [](const nlohmann::json& field) {
    return field.is_array() && field.size() == 2 && field[0].is_string() && field[1].is_string();
  };
  if (!list.is_array() || !std::ranges::all_of(list, is_text_pair))
    throw UserError("{}: this is no list of [name, value]; it was damaged after it was written", path);
  std::vector<std::pair<std::string, std::string>> fields;
  for (const nlohmann::json& field : list)
    fields.emplace_back(field[0].get<std::string>(), field[1].get<std::string>());
  return fields;
}

}  // namespace

RunView open_run(const std::string& folder) {
  require_run(folder);
  RunView run;
  run.folder = folder;
  Metrics metrics;
  if (exists(folder + "/metrics.jsonl")) metrics = read_metrics(folder + "/metrics.jsonl");
  run.steps = surviving_steps(metrics.steps);
  run.evaluations = surviving_evaluations(metrics, run.steps.empty() ? 0 : run.steps.back().step);
  if (exists(folder + "/identity.json")) run.identity = read_identity(folder + "/identity.json");
  run.finished = exists(folder + "/summary.json");
  run.summary = run.finished ? read_summary(folder + "/summary.json") : summary_so_far(run, metrics);
  return run;
}

}  // namespace lockstep
