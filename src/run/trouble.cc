#include "run/trouble.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "run/run_folder.h"
#include "train/guard/inspect.h"

namespace lockstep {
namespace {

constexpr size_t kRecent = 50;

Inspection inspect_step(Trouble trouble, int64_t step, const JobParts& parts, TrainStep& train,
                        Feeder& feeder, const std::function<void()>& progress) {
  InspectOptions options;
  options.trouble = trouble;
  options.step = step;
  options.microbatches = parts.resolved.microbatches;
  options.load = [&](int64_t microbatch) {
    progress();
    feeder.load(train, step, microbatch);
  };
  options.describe = [&](int64_t microbatch, int64_t row) {
    return feeder.source().describe(feeder.records(step, microbatch).at(static_cast<size_t>(row)));
  };
  options.passes = parts.options.passes;
  return inspect(train, parts.model, options);
}

}  // namespace

void RecentNumbers::add(double loss, double grad_norm) {
  losses_.push_back(loss);
  grad_norms_.push_back(grad_norm);
  if (losses_.size() <= kRecent) return;
  losses_.pop_front();
  grad_norms_.pop_front();
}

Diagnosis examine(const Decision& decision, const StepRecord& record, const RecentNumbers& recent,
                  const JobParts& parts, TrainStep& train, Feeder& feeder,
                  const std::function<void()>& progress) {
  TroubleFacts facts;
  facts.numbers = {record.step, record.loss, record.grad_norm, record.count};
  facts.trouble = decision.trouble;
  facts.microbatches = parts.resolved.microbatches;
  facts.inspection = inspect_step(decision.trouble, record.step, parts, train, feeder, progress);
  facts.losses = recent.losses();
  facts.grad_norms = recent.grad_norms();
  facts.lr = record.lr;
  facts.peak_lr = parts.schedule.peak();
  facts.schedule = parts.schedule.settings();
  facts.bf16 = parts.spec.train.precision == Precision::kBf16;
  facts.optimizer = name_of(parts.spec.train.optimizer.name);
  facts.beta2 = parts.spec.train.optimizer.betas[1];
  facts.clip_norm = parts.spec.train.clip_norm;
  Diagnosis diagnosis = diagnose(facts);
  write_file(diagnosis_path(parts.spec.output), to_json(facts, diagnosis).dump(2) + "\n");
  return diagnosis;
}

}  // namespace lockstep
