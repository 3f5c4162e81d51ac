#include "train/evaluate/eval_result.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 3> kNextTokenMetrics = {"loss", "perplexity", "accuracy"};
constexpr std::array<std::string_view, 4> kClassifyMetrics = {"loss", "accuracy", "macro_f1", "log_loss"};
constexpr std::array<std::string_view, 6> kBinaryMetrics = {"loss", "accuracy", "log_loss",
                                                            "auc",  "pr_auc",   "f1"};
constexpr std::array<std::string_view, 4> kRegressMetrics = {"loss", "mae", "rmse", "r2"};
constexpr std::array<std::string_view, 5> kSmallerIsBetter = {"loss", "perplexity", "log_loss", "mae",
                                                              "rmse"};

}  // namespace

std::span<const std::string_view> metrics_of(Task task) {
  switch (task) {
    case Task::kNextToken: return kNextTokenMetrics;
    case Task::kClassify: return kClassifyMetrics;
    case Task::kRegress: return kRegressMetrics;
    case Task::kBinary: break;
  }
  return kBinaryMetrics;
}

void check_metric(Task task, std::string_view metric) {
  const auto known = metrics_of(task);
  if (std::find(known.begin(), known.end(), metric) == known.end())
    throw UserError("this model is not evaluated by {}; use {}", metric, fmt::join(known, ", "));
}

double metric_value(const EvalResult& result, std::string_view metric) {
  if (metric == "loss") return result.loss;
  const std::array<std::pair<std::string_view, std::optional<double>>, 10> others = {
      {{"perplexity", result.perplexity},
       {"accuracy", result.accuracy},
       {"macro_f1", result.macro_f1},
       {"log_loss", result.log_loss},
       {"auc", result.auc},
       {"pr_auc", result.pr_auc},
       {"f1", result.f1},
       {"mae", result.mae},
       {"rmse", result.rmse},
       {"r2", result.r2}}};
  std::vector<std::string_view> there{"loss"};
  for (const auto& [name, value] : others) {
    if (!value) continue;
    if (name == metric) return *value;
    there.push_back(name);
  }
  throw UserError("the evaluation has no {}; it has {}", metric, fmt::join(there, ", "));
}

bool is_undefined(const EvalResult& result, std::string_view metric) {
  return std::isfinite(result.loss) && std::isnan(metric_value(result, metric));
}

bool is_better(std::string_view metric, double a, double b) {
  if (std::isnan(a)) return false;
  if (std::isnan(b)) return true;
  const bool smaller =
      std::find(kSmallerIsBetter.begin(), kSmallerIsBetter.end(), metric) != kSmallerIsBetter.end();
  return smaller ? a < b : a > b;
}

}  // namespace lockstep
