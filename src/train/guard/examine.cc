#include "train/guard/examine.h"

#include <nlohmann/json.hpp>

#include "base/file.h"

namespace lockstep {
namespace {

constexpr size_t kRecent = 50;

void add(std::deque<double>& recent, double value) {
  recent.push_back(value);
  if (recent.size() > kRecent) recent.pop_front();
}

}  // namespace

Examiner::Examiner(TroubleFacts known, const Model& model, PassOptions passes, std::string file)
    : known_(std::move(known)), model_(model), passes_(std::move(passes)), file_(std::move(file)) {}

void Examiner::good_step(double loss, double grad_norm) {
  add(losses_, loss);
  add(grad_norms_, grad_norm);
}

Diagnosis Examiner::examine(const Decision& decision, const StepNumbers& numbers, double lr, TrainStep& train,
                            Access access) const {
  InspectOptions options;
  options.trouble = decision.trouble;
  options.step = numbers.step;
  options.microbatches = known_.microbatches;
  options.load = std::move(access.load);
  options.describe = std::move(access.describe);
  options.passes = passes_;

  TroubleFacts facts = known_;
  facts.numbers = numbers;
  facts.trouble = decision.trouble;
  facts.lr = lr;
  facts.losses = {losses_.begin(), losses_.end()};
  facts.grad_norms = {grad_norms_.begin(), grad_norms_.end()};
  facts.inspection = inspect(train, model_, options);
  Diagnosis diagnosis = diagnose(facts);
  write_file(file_, to_json(facts, diagnosis).dump(2) + "\n");
  return diagnosis;
}

}  // namespace lockstep
