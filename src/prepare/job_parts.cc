#include "prepare/job_parts.h"

#include "job/files.h"
#include "job/open_model.h"
#include "model/hf/source.h"
#include "prepare/arithmetic.h"
#include "prepare/job_data.h"
#include "prepare/job_identity.h"
#include "prepare/job_options.h"
#include "prepare/job_schedule.h"

namespace lockstep {

namespace {

// What the labels decided holds for the job from here on, and for the one that is kept with the run.
void take_task(const Data& data, JobSpec& spec) {
  if (!data.labels || spec.model.task != LabelTask::kAuto) return;
  spec.model.task = data.labels->task;
  spec.origins["model.task"] = {.kind = Origin::Kind::kDerived, .how = data.label_decision};
}

}  // namespace

JobParts build_parts(JobSpec spec, Backend& backend, const HostShare& host, bool leads, Keeping keeping) {
  resolve(spec);  // refuses what does not hold together before anything is read
  require_files(spec);
  Data data = open_job_data(spec, host, leads, {}, {}, keeping);
  take_task(data, spec);
  const InputSizes inputs = input_sizes(data);
  Model model = build_job_model(spec, inputs);
  const ResolvedJob resolved =
      resolve(spec, {.parameters = parameter_count(model), .train_samples = data.train->size()});
  Schedule schedule = job_schedule(spec, resolved);
  TrainOptions options = job_train_options(spec, resolved);
  // Of a model that is split everybody draws what it holds.
  options.draws_weights = leads || options.mesh.splits_model() || options.tensor_leaves > 1;
  Identity identity = job_identity(spec, resolved, schedule, model, data,
                                   {backend.architecture(), measured_arithmetic(spec, backend)});
  std::optional<InitialWeights> initial = job_initial_weights(spec, model);
  if (initial) add_to_identity(*initial, identity);
  std::optional<PretrainedWeights> pretrained = PretrainedWeights::of_job(spec, model);
  if (pretrained) pretrained->mark_given(model);
  return {std::move(spec),     host,     std::move(data), inputs,
          std::move(model),    resolved, schedule,        std::move(options),
          std::move(identity), initial,  pretrained};
}

void read_pretrained(JobParts& parts, TrainStep* into) {
  if (parts.pretrained) parts.pretrained->read(job_threads(parts.spec, parts.host), &parts.identity, into);
}

std::set<std::string> frozen_in_folder(const JobParts& parts) {
  const HfSource* const source = parts.spec.model.source.get();
  if (!uses_lora(parts.spec) || source == nullptr || source->files() == nullptr) return {};
  std::set<std::string> names;
  for (const GraphInput& input : parts.model.graph.inputs()) {
    if (input.role != Role::kFrozen) continue;
    const Type& type = parts.model.graph.type(input.value);
    const TensorSpec tensor{parts.model.graph.name(input.value), type.dtype, type.shape};
    if (source->find(tensor) != nullptr) names.insert(tensor.name);
  }
  if (parts.initial)
    for (const std::string& taken : parts.initial->taken) names.erase(taken);
  return names;
}

}  // namespace lockstep
