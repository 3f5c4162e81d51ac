// How an evaluation is told: in a terminal, and as JSON.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "observe/plot.h"
#include "use/answer.h"
#include "use/evaluate_run.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPlottedPoints = 512;
constexpr int64_t kMostClassesShown = 12;

std::string number(double value) {
  return std::isnan(value) ? std::string("undefined") : fmt::format("{}", value);
}

std::string class_name(const RunEvaluation& evaluation, int64_t label) {
  const auto place = static_cast<size_t>(label);
  return place < evaluation.classes.size() ? evaluation.classes[place] : std::to_string(label);
}

void add_metrics(const RunEvaluation& evaluation, std::string& text) {
  const EvalResult& result = evaluation.result;
  for (const std::string_view metric : metrics_of(evaluation.task)) {
    text += fmt::format("  {:<18} {}", metric, number(metric_value(result, metric)));
    if (metric == "f1" && result.f1_threshold)
      text += fmt::format("   at probability {:.6g}", *result.f1_threshold);
    text += "\n";
  }
  if (evaluation.curve)
    text += fmt::format("  {:<18} {}\n", "average precision", number(evaluation.curve->average_precision()));
  if (evaluation.calibration)
    text += fmt::format("  {:<18} {}\n", "calibration error", number(evaluation.calibration->expected_error));
}

void add_table(const RunEvaluation& evaluation, const ConfusionMatrix& matrix, const std::string& title,
               std::string& text) {
  text += fmt::format("\n{}: what is true down, what was predicted across\n", title);
  if (matrix.classes() > kMostClassesShown) {
    struct Mistake {
      int64_t count, truth, predicted;
    };
    std::vector<Mistake> mistakes;
    for (int64_t t = 0; t < matrix.classes(); ++t)
      for (int64_t p = 0; p < matrix.classes(); ++p)
        if (t != p && matrix.at(t, p) > 0) mistakes.push_back({matrix.at(t, p), t, p});
    std::stable_sort(mistakes.begin(), mistakes.end(),
                     [](const Mistake& a, const Mistake& b) { return a.count > b.count; });
    text += fmt::format("  {} classes; the most frequent mistakes of {} (all of them: --json)\n",
                        matrix.classes(), mistakes.size());
    for (size_t i = 0; i < std::min<size_t>(mistakes.size(), kMostClassesShown); ++i)
      text += fmt::format("  {:>10}  {} taken for {}\n", mistakes[i].count,
                          class_name(evaluation, mistakes[i].truth),
                          class_name(evaluation, mistakes[i].predicted));
    return;
  }
  size_t width = 8;
  for (int64_t t = 0; t < matrix.classes(); ++t) width = std::max(width, class_name(evaluation, t).size());
  text += fmt::format("  {:>{}}", "", width);
  for (int64_t p = 0; p < matrix.classes(); ++p)
    text += fmt::format("  {:>{}}", class_name(evaluation, p), width);
  text += "\n";
  for (int64_t t = 0; t < matrix.classes(); ++t) {
    text += fmt::format("  {:>{}}", class_name(evaluation, t), width);
    for (int64_t p = 0; p < matrix.classes(); ++p) text += fmt::format("  {:>{}}", matrix.at(t, p), width);
    text += "\n";
  }
}

void add_curves(const ThresholdCurve& curve, const EvaluationText& options, std::string& text) {
  const std::vector<ThresholdPoint> points = curve.some(kPlottedPoints);
  PlotOptions plot;
  plot.width = std::clamp(options.width - 16, 16, 72);
  plot.height = 10;
  plot.unicode = options.unicode;
  plot.from_zero = true;
  std::vector<double> x{0}, y{0};
  for (const ThresholdPoint& point : points) {
    x.push_back(curve.false_positive_rate(point));
    y.push_back(curve.recall(point));
  }
  plot.x_name = "false positive rate";
  text += "\nROC: recall\n" + line_plot(x, y, plot);
  x.clear();
  y.clear();
  for (const ThresholdPoint& point : points) {
    x.push_back(curve.recall(point));
    y.push_back(ThresholdCurve::precision(point));
  }
  plot.x_name = "recall";
  text += "\nprecision\n" + line_plot(x, y, plot);
}

void add_calibration(const Calibration& calibration, std::string& text) {
  text += fmt::format("\ncalibration\n  {:>13}  {:>10}  {:>10}  {:>10}\n", "probability", "records",
                      "predicted", "observed");
  for (const CalibrationBin& bin : calibration.bins) {
    text += fmt::format("  {:>5.2f} to {:>4.2f}  {:>10}", bin.from, bin.to, bin.count);
    if (bin.count > 0) text += fmt::format("  {:>10.4f}  {:>10.4f}", bin.predicted, bin.observed);
    text += "\n";
  }
}

Json json_of(const ConfusionMatrix& matrix) {
  Json rows = Json::array();
  for (int64_t t = 0; t < matrix.classes(); ++t) {
    Json row = Json::array();
    for (int64_t p = 0; p < matrix.classes(); ++p) row.push_back(matrix.at(t, p));
    rows.push_back(std::move(row));
  }
  return rows;
}

// NaN becomes null.
Json json_of(double value) { return std::isfinite(value) ? Json(value) : Json(); }

}  // namespace

std::string to_text(const RunEvaluation& evaluation, const EvaluationText& options) {
  std::string text = fmt::format("{} (step {}) on {} records, {:.2f} s\n", evaluation.checkpoint,
                                 evaluation.step, evaluation.result.samples, evaluation.result.seconds);
  add_metrics(evaluation, text);
  const bool binary = evaluation.task == Task::kBinary;
  if (evaluation.confusion)
    add_table(evaluation, *evaluation.confusion, binary ? "confusion at probability 0.5" : "confusion", text);
  if (evaluation.at_best_f1)
    add_table(evaluation, *evaluation.at_best_f1,
              fmt::format("confusion at probability {:.6g}, the best f1", *evaluation.result.f1_threshold),
              text);
  if (evaluation.curve) add_curves(*evaluation.curve, options, text);
  if (evaluation.calibration) add_calibration(*evaluation.calibration, text);
  return text;
}

std::string to_json(const RunEvaluation& evaluation) {
  const EvalResult& result = evaluation.result;
  Json json = {{"checkpoint", evaluation.checkpoint},
               {"step", evaluation.step},
               {"records", result.samples},
               {"seconds", result.seconds}};
  Json& metrics = json["metrics"] = Json::object();
  for (const std::string_view metric : metrics_of(evaluation.task))
    metrics[std::string(metric)] = json_of(metric_value(result, metric));
  if (result.f1_threshold) metrics["f1_threshold"] = json_of(*result.f1_threshold);
  if (evaluation.curve) metrics["average_precision"] = json_of(evaluation.curve->average_precision());
  if (evaluation.calibration) metrics["calibration_error"] = json_of(evaluation.calibration->expected_error);
  if (!evaluation.classes.empty()) json["classes"] = evaluation.classes;
  if (evaluation.confusion) json["confusion"] = json_of(*evaluation.confusion);
  if (evaluation.at_best_f1) json["confusion_at_best_f1"] = json_of(*evaluation.at_best_f1);
  if (evaluation.curve) {
    Json points = Json::array();
    for (const ThresholdPoint& point : evaluation.curve->some(kPlottedPoints))
      points.push_back({{"probability", probability_of(point.score)},
                        {"true_positive", point.true_positive},
                        {"false_positive", point.false_positive},
                        {"recall", json_of(evaluation.curve->recall(point))},
                        {"false_positive_rate", json_of(evaluation.curve->false_positive_rate(point))},
                        {"precision", json_of(ThresholdCurve::precision(point))}});
    json["curve"] = std::move(points);
  }
  if (evaluation.calibration) {
    Json bins = Json::array();
    for (const CalibrationBin& bin : evaluation.calibration->bins)
      bins.push_back({{"from", bin.from},
                      {"to", bin.to},
                      {"records", bin.count},
                      {"predicted", bin.predicted},
                      {"observed", bin.observed}});
    json["calibration"] = std::move(bins);
  }
  return json.dump(1) + "\n";
}

}  // namespace lockstep
