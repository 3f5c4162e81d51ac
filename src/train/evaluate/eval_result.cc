#include "train/evaluate/eval_result.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 3> kNextTokenMetrics = {"loss", "perplexity", "accuracy"};
constexpr std::array<std::string_view, 2> kClassifyMetrics = {"loss", "accuracy"};
constexpr std::array<std::string_view, 4> kBinaryMetrics = {"loss", "accuracy", "auc", "f1"};

}  // namespace

std::span<const std::string_view> metrics_of(Task task) {
  switch (task) {
    case Task::kNextToken: return kNextTokenMetrics;
    case Task::kClassify: return kClassifyMetrics;
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
  const std::array<std::pair<std::string_view, std::optional<double>>, 4> others = {
      {{"perplexity", result.perplexity},
       {"accuracy", result.accuracy},
       {"auc", result.auc},
       {"f1", result.f1}}};
  std::vector<std::string_view> there{"loss"};
  for (const auto& [name, value] : others) {
    if (!value) continue;
    if (name == metric) return *value;
    there.push_back(name);
  }
  throw UserError("the evaluation has no {}; it has {}", metric, fmt::join(there, ", "));
}

bool is_better(std::string_view metric, double a, double b) {
  if (std::isnan(a)) return false;
  if (std::isnan(b)) return true;
  return metric == "loss" || metric == "perplexity" ? a < b : a > b;
}

}  // namespace lockstep
