// HeldOut: evaluation on the job's held-out records, which evaluation was the best, and whether the run
// should stop because there was no progress. With a moving average of the weights, that is what is evaluated.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "observe/records.h"
#include "prepare/job_parts.h"
#include "train/evaluate/early_stop.h"
#include "train/evaluate/evaluate.h"
#include "train/step/train_step.h"

namespace lockstep {

class HeldOut {
 public:
  // Throws UserError if the job watches a metric that its model does not have, or watches anything without
  // held-out records. Who does not evaluate only keeps account of what the leader found.
  HeldOut(const JobParts& parts, Backend& backend, const StreamOptions& reading, bool evaluates = true);

  bool exists() const { return exists_; }  // the same on all workers
  // `best` in the record says whether it is the best so far.
  EvalRecord evaluate(TrainStep& train, int64_t step, const std::function<void()>& after_batch);
  bool should_stop() const { return early_stop_.should_stop(); }

  const std::optional<EvalRecord>& last() const { return last_; }
  const std::optional<EvalRecord>& best() const { return best_; }
  int64_t planned_bytes() const { return evaluator_ ? evaluator_->planned_bytes() : 0; }

  // What a checkpoint carries.
  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  std::shared_ptr<const Source> source_;
  StreamOptions reading_;
  bool exists_;
  std::string metric_, stop_metric_;
  EarlyStop early_stop_;
  std::unique_ptr<Evaluator> evaluator_;  // null without held-out records, and where they are not evaluated
  std::optional<EvalRecord> last_, best_;
  std::optional<double> best_value_;
};

}  // namespace lockstep
