// A trained run judged on other records: the metrics that training reports, computed as training does, and
// what lies behind them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prepare/trained_run.h"
#include "train/evaluate/curves.h"
#include "train/evaluate/eval_result.h"

namespace lockstep {

struct EvaluateOptions {
  std::vector<std::string> files = {};     // none: what the run itself held out
  std::optional<std::string> format = {};  // of the files; see use/use_data.h
  std::optional<int64_t> threads = {};     // unset: the processors of this machine
};

struct RunEvaluation {
  std::string checkpoint;
  int64_t step = 0;
  Task task = Task::kClassify;
  EvalResult result;                         // the bits that training would have reported
  std::vector<std::string> classes = {};     // their names, in the order of the labels
  std::optional<ThresholdCurve> curve = {};  // of a yes or no
  std::optional<ConfusionMatrix> confusion =
      {};  // of a yes or no at probability 0.5, of classes by the likeliest
  std::optional<ConfusionMatrix> at_best_f1 = {};
  // Of the yes, or of the class that was chosen.
  std::optional<Calibration> calibration = {};
};

RunEvaluation evaluate_run(const TrainedRun& run, const EvaluateOptions& options);

struct EvaluationText {
  int width = 64;
  bool unicode = true;
};
// For people, with plots of the curves.
std::string to_text(const RunEvaluation& evaluation, const EvaluationText& options);
// For programs. What is undefined is null.
std::string to_json(const RunEvaluation& evaluation);

}  // namespace lockstep
