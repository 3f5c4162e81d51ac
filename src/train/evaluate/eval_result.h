// What an evaluation found, and how one metric of it is named, read and compared.
//
// Every task has a loss. Predicting the next token also has perplexity and accuracy; choosing one class
// accuracy; a yes or no accuracy (at probability 0.5), auc and the best f1.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/model.h"

namespace lockstep {

struct EvalResult {
  double loss = 0;  // mean over what the loss counts
  int64_t count = 0;
  std::optional<double> perplexity;
  std::optional<double> accuracy;
  std::optional<double> auc;
  std::optional<double> f1;            // at the best threshold
  std::optional<double> f1_threshold;  // the probability from which f1 says yes
  int64_t samples = 0;
  double seconds = 0;
};

// The metrics of a task, "loss" first.
std::span<const std::string_view> metrics_of(Task task);
// Throws UserError that names the metrics there are.
void check_metric(Task task, std::string_view metric);
// The same when the result does not have the metric.
double metric_value(const EvalResult& result, std::string_view metric);
// Whether a is a better value of the metric than b: smaller for loss and perplexity, larger for the others.
// NaN is worse than any number.
bool is_better(std::string_view metric, double a, double b);

}  // namespace lockstep
