// What an evaluation found, and how one metric of it is named, read and compared.
//
// Every task has a loss. Predicting the next token also has perplexity and accuracy; choosing one class
// accuracy, macro_f1 and log_loss; a yes or no accuracy (at probability 0.5), log_loss, auc, pr_auc and the
// best f1; a number mae, rmse and r2, in the label's own units. A metric that the records leave undefined
// (the auc of one class) is there and NaN.
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
  std::optional<double> macro_f1;
  std::optional<double> log_loss;
  std::optional<double> auc;
  std::optional<double> pr_auc;
  std::optional<double> f1;            // at the best threshold
  std::optional<double> f1_threshold;  // the probability from which f1 says yes
  std::optional<double> mae, rmse, r2;
  int64_t samples = 0;
  double seconds = 0;
};

// The metrics of a task, "loss" first.
std::span<const std::string_view> metrics_of(Task task);
// Throws UserError that names the metrics there are.
void check_metric(Task task, std::string_view metric);
// The same when the result does not have the metric.
double metric_value(const EvalResult& result, std::string_view metric);
// Whether the records leave it undefined: a model whose numbers are not finite has no metric either, but its
// loss says so.
bool is_undefined(const EvalResult& result, std::string_view metric);
// Whether a is a better value of the metric than b: smaller for losses, perplexity and errors, larger for the
// others.
// NaN is worse than any number.
bool is_better(std::string_view metric, double a, double b);

}  // namespace lockstep
