#include "prepare/trained_model.h"

#include "base/error.h"
#include "data/transform/table_encoding.h"
#include "prepare/job_model.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/update/ema.h"

namespace lockstep {
namespace {

InputSizes sizes_in(const TrainedRun& run) {
  const SafetensorsReader& weights = run.checkpoint->weights();
  InputSizes sizes{.tables = 0, .dense = 0, .padded = true};
  if (run.spec.model.family != nullptr && run.spec.model.family->records == Records::kTable) {
    const LabelEncoding labels = labels_in(run.constants);
    sizes.task = labels.task;
    sizes.classes = labels.class_count();
    sizes.target = {labels.mean, labels.deviation};
  }
  while (weights.contains(fmt::format("table.{}.weight", sizes.tables))) ++sizes.tables;
  if (weights.contains("bottom.0.weight")) sizes.dense = weights.at("bottom.0.weight").tensor.shape[1];
  return sizes;
}

}  // namespace

TrainedModel::TrainedModel(TrainedRun run)
    : run_(std::move(run)), inputs_(sizes_in(run_)), averaged_(run_.checkpoint->has_tensors(kAverageFile)) {
  if (spec().model.family == nullptr)
    throw UserError("{}: the job names no model.family; only those can be opened", path());
  const Model model = evaluation(1);
  for (const GraphInput& input : model.graph.inputs()) {
    if (input.role == Role::kInput) continue;
    const Type& type = model.graph.type(input.value);
    weights_.push_back({model.graph.name(input.value), type.dtype, type.shape});
    if (!in_base(weights_.back()))
      run_.checkpoint->weights().at(weights_.back());  // throws where the checkpoint has another one
  }
}

Model TrainedModel::evaluation(int64_t batch) const { return build_job_evaluation(spec(), inputs_, batch); }

const StoredTensor* TrainedModel::in_base(const TensorSpec& weight) const {
  const HfSource* const base = run_.base_weights();
  if (base == nullptr || run_.checkpoint->weights().contains(weight.name)) return nullptr;
  return base->find(weight);
}

void TrainedModel::read(const TensorSpec& weight, int64_t first, std::span<std::byte> into) const {
  if (averaged_) {
    const SafetensorsReader& averages = run_.checkpoint->tensors(kAverageFile);
    const std::string name = average_name(weight.name);
    if (averages.contains(name))
      return averages.read(averages.at({name, weight.dtype, weight.shape}), into, first);
  }
  if (const StoredTensor* stored = in_base(weight))
    return run_.base_weights()->files()->read(*stored, first, into);
  const SafetensorsReader& weights = run_.checkpoint->weights();
  weights.read(weights.at(weight), into, first);
}

}  // namespace lockstep
