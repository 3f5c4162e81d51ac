#include "run/job_model.h"

#include "base/error.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/resnet.h"
#include "model/tabular.h"

namespace lockstep {
namespace {

Model build(const JobSpec& spec, const InputSizes& inputs, int64_t batch, bool training) {
  const ModelSpec& m = spec.model;
  switch (m.family) {
    case ModelFamily::kGpt:
      return build_gpt({.layers = m.layers,
                        .dim = m.dim,
                        .heads = m.heads,
                        .vocab = m.vocab,
                        .batch = batch,
                        .seq = m.seq,
                        .dropout = m.dropout,
                        .training = training,
                        .documents = inputs.documents});
    case ModelFamily::kEncoder:
      return build_encoder({.layers = m.layers,
                            .dim = m.dim,
                            .heads = m.heads,
                            .hidden = m.hidden.value_or(4 * m.dim),
                            .vocab = m.vocab,
                            .classes = m.classes,
                            .batch = batch,
                            .seq = m.seq,
                            .dropout = m.dropout,
                            .padded = inputs.padded,
                            .training = training});
    case ModelFamily::kTabular:
      return build_tabular({.tables = m.tables.value_or(inputs.tables),
                            .rows = m.rows,
                            .dim = m.dim,
                            .dense = m.dense.value_or(inputs.dense),
                            .bottom = m.bottom,
                            .top = m.top,
                            .batch = batch,
                            .training = training,
                            .weighted = training && inputs.weighted});
    case ModelFamily::kResnet: break;
  }
  return build_resnet({.depth = m.depth,
                       .width = m.width,
                       .image = m.image,
                       .classes = m.classes,
                       .batch = batch,
                       .training = training});
}

}  // namespace

Model build_job_model(const JobSpec& spec, const InputSizes& inputs) {
  return build(spec, inputs, spec.train.microbatch, true);
}

Model build_job_evaluation(const JobSpec& spec, const InputSizes& inputs, int64_t batch) {
  return build(spec, inputs, batch, false);
}

int64_t parameter_count(const Model& model) {
  int64_t sum = 0;
  for (const GraphInput& input : model.graph.inputs())
    if (input.role == Role::kParam) sum += model.graph.type(input.value).shape.numel();
  return sum;
}

}  // namespace lockstep
