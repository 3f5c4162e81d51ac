// HeldOut: evaluation on the job's held-out records, which evaluation was the best, and whether the run
// should stop because there was no progress. With a moving average of the weights, that is what is evaluated.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "observe/records.h"
#include "train/evaluate/early_stop.h"
#include "train/evaluate/evaluate.h"
#include "train/step/train_step.h"

namespace lockstep {

struct HeldOutOptions {
  bool exists = false;                   // whether the run evaluates; the same on all workers
  std::shared_ptr<const Source> source;  // null where this worker does not
  StreamOptions reading;
  std::string metric, stop_metric;  // which evaluation is the best; whose progress counts
  int64_t patience = 0;             // evaluations without progress; 0: never stops
  double min_delta = 0;
};

class HeldOut {
 public:
  // Who has no evaluator only keeps account of what the leader found.
  HeldOut(HeldOutOptions options, std::unique_ptr<Evaluator> evaluator);

  bool exists() const { return options_.exists; }
  // `best` in the record says whether it is the best so far.
  EvalRecord evaluate(TrainStep& train, int64_t step, const std::function<void()>& after_batch);
  // That parameters are gathered in, none where they are whole; and who brings those to evaluate. It must
  // outlive evaluate().
  std::vector<ParamUnit> units() const { return evaluator_ ? evaluator_->units() : std::vector<ParamUnit>{}; }
  void gather_with(UnitSource& source) {
    if (evaluator_) evaluator_->gather_with(source);
  }
  bool should_stop() const { return early_stop_.should_stop(); }

  const std::optional<EvalRecord>& last() const { return last_; }
  const std::optional<EvalRecord>& best() const { return best_; }
  int64_t planned_bytes() const { return evaluator_ ? evaluator_->planned_bytes() : 0; }

  // What a checkpoint carries.
  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  void warn_if_undefined(const EvalResult& result);

  HeldOutOptions options_;
  EarlyStop early_stop_;
  std::unique_ptr<Evaluator> evaluator_;
  std::optional<EvalRecord> last_, best_;
  std::optional<double> best_value_;
  bool warned_ = false;
};

}  // namespace lockstep
