#include "observe/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/number_text.h"
#include "base/printable.h"
#include "observe/plot.h"
#include "observe/progress_text.h"
#include "observe/record_fields.h"
#include "observe/record_json.h"
#include "observe/run_facts.h"

namespace lockstep {
namespace {

constexpr size_t kMostEvaluations = 12;
constexpr int kWidestPlot = 100;
constexpr int kPlotMargin = 16;  // labels of the axes

std::string facts_table(const RunView& run) {
  std::string text;
  for (const Fact& fact : run_facts(run)) text += fmt::format("  {:<18}{}\n", fact.name, fact.text);
  return text;
}

// At most so many, spread evenly, with the last and the best.
std::vector<EvalRecord> some_of(const std::vector<EvalRecord>& all, const std::optional<EvalRecord>& best) {
  const size_t stride = (all.size() + kMostEvaluations - 1) / kMostEvaluations;
  std::vector<EvalRecord> some;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_best = best && all[i].step == best->step;
    if ((all.size() - 1 - i) % stride == 0 || is_best) some.push_back(all[i]);
  }
  return some;
}

// By number; many as ranges of neighbours, whose transfers and waits are added up.
std::vector<std::pair<std::string, CommBucket>> some_buckets(const std::vector<CommBucket>& all) {
  constexpr size_t kMostBuckets = 8;
  const size_t each = (all.size() + kMostBuckets - 1) / kMostBuckets;
  std::vector<std::pair<std::string, CommBucket>> some;
  for (size_t first = 0; first < all.size(); first += each) {
    const size_t last = std::min(all.size(), first + each) - 1;
    CommBucket sum = all[first];
    for (size_t i = first + 1; i <= last; ++i) {
      sum.bytes += all[i].bytes;
      sum.transfer_ms += all[i].transfer_ms;
      sum.exposed_ms += all[i].exposed_ms;
    }
    sum.ahead_ms = all[last].ahead_ms;
    some.emplace_back(
        first == last ? fmt::format("{}", first + 1) : fmt::format("{}-{}", first + 1, last + 1), sum);
  }
  return some;
}

std::string evaluations_table(const RunView& run) {
  if (run.evaluations.empty()) return "";
  std::string text = fmt::format("\n  {:>10}  {:>10}", "evaluation", "loss");
  visit_scores(run.evaluations.back(), [&](const char* name, const std::optional<double>& score) {
    if (score) text += fmt::format("  {:>10}", name);
  });
  text += "\n";
  for (const EvalRecord& record : some_of(run.evaluations, run.summary.best_eval)) {
    text += fmt::format("  {:>10}  {:>10}", record.step, short_number(record.loss, 5));
    visit_scores(record, [&](const char* name, const std::optional<double>& score) {
      if (score)
        text +=
            fmt::format("  {:>{}}", score_text(*score), std::max<size_t>(10, std::string_view(name).size()));
    });
    const bool best = run.summary.best_eval && run.summary.best_eval->step == record.step;
    text += best ? "  best\n" : "\n";
  }
  return text;
}

std::string communication_table(const RunView& run) {
  if (!run.summary.communication) return "";
  const CommunicationSummary& comm = *run.summary.communication;
  std::string text = fmt::format("\n  communication in the open: {} of {} ms a step\n",
                                 short_number(comm.exposed_ms), short_number(comm.step_ms));
  text += fmt::format("  {:<22}{:>12}{:>12}{:>12}\n", "with", "exposed ms", "saves ms", "step ms");
  for (const CommOption& option : comm.options)
    text +=
        fmt::format("  {:<22}{:>12}{:>12}{:>12}{}{}\n", printable(option.name),
                    short_number(option.exposed_ms), short_number(option.saves_ms),
                    short_number(option.step_ms), option.note.empty() ? "" : "  ", printable(option.note));
  text += fmt::format("\n  {:>8}{:>12}{:>14}{:>14}{:>12}\n", "bucket", "gradients", "ready before",
                      "travels ms", "exposed ms");
  for (const auto& [name, bucket] : some_buckets(comm.buckets))
    text += fmt::format("  {:>8}{:>12}{:>14}{:>14}{:>12}\n", name, bytes_text(bucket.bytes),
                        short_number(bucket.ahead_ms), short_number(bucket.transfer_ms),
                        short_number(bucket.exposed_ms));
  return text;
}

std::string loss_plot(const RunView& run, const ReportOptions& options) {
  if (run.steps.size() < 2) return "";
  std::vector<double> x, y;
  for (const StepRecord& record : run.steps) {
    x.push_back(static_cast<double>(record.step));
    y.push_back(record.loss);
  }
  PlotOptions plot;
  plot.width = std::clamp(options.width - kPlotMargin, 16, kWidestPlot);
  plot.unicode = options.unicode;
  plot.x_name = "step";
  return "\nloss\n" + line_plot(x, y, plot);
}

}  // namespace

std::string run_report(const RunView& run, const ReportOptions& options) {
  const std::string name = run.summary.name.empty() ? "" : printable(run.summary.name) + "  ";
  std::string text = fmt::format("{}{}\n", name, printable(run.folder));
  if (!run.finished)
    text += "  there is no summary.json: the run goes on, or was killed; this is what metrics.jsonl tells\n";
  text += facts_table(run) + communication_table(run) + evaluations_table(run) + loss_plot(run, options);
  if (run.steps.empty()) text += "  no step was logged\n";
  return text;
}

std::string run_report_json(const RunView& run) {
  using nlohmann::ordered_json;
  ordered_json report;
  report["folder"] = run.folder;
  report["finished"] = run.finished;
  report["summary"] = ordered_json::parse(to_json_text(run.summary));
  report["evaluations"] = ordered_json::array();
  for (const EvalRecord& record : run.evaluations)
    report["evaluations"].push_back(ordered_json::parse(to_json_line(record)));
  report["last_step"] =
      run.steps.empty() ? ordered_json() : ordered_json::parse(to_json_line(run.steps.back()));
  return report.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep
