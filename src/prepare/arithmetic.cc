#include "prepare/arithmetic.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/sha256.h"
#include "model/family.h"
#include "prepare/job_options.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

constexpr size_t kShownDigits = 16;

// Extents that are no multiples of a vector's, so that tails are measured too.
ModelSizes small_sizes(const ModelFamily& family) {
  ModelSizes sizes = family.defaults;
  sizes.layers = 1;
  sizes.dim = 128;
  sizes.heads = 8;
  sizes.hidden = 200;
  sizes.vocab = 253;
  sizes.seq = 37;
  sizes.classes = 10;
  sizes.depth = 18;
  sizes.width = 8;
  sizes.image = 32;
  sizes.rows = 301;
  sizes.tables = 3;
  sizes.dense = 5;
  sizes.bottom = {65, 33};
  sizes.top = {66, 34};
  sizes.dropout = 0;
  return sizes;
}

// Enough samples that the inner axis of gradients of weights is long.
int64_t samples_of(Records records) {
  switch (records) {
    case Records::kImages: return 2;
    case Records::kTable: return 300;
    default: return 8;
  }
}

// A model of a folder has the sizes that it has: the family of our own whose layers are most like its own
// stands for it.
const ModelFamily& measured_family(const JobSpec& spec) {
  if (spec.model.source == nullptr) return *spec.model.family;
  const std::string_view like = spec.model.family->records == Records::kTokens ? "llama" : "encoder";
  return **std::ranges::find(model_families(), like, &ModelFamily::name);
}

template <typename T>
void add(Sha256& hash, std::span<const T> values) {
  hash.update(std::as_bytes(values));
}

}  // namespace

std::string measured_arithmetic(const JobSpec& spec, Backend& backend) {
  if (backend.memory() != MemoryKind::kHost) return {};
  const ModelFamily& family = measured_family(spec);
  const Model model = family.build(small_sizes(family), {}, samples_of(family.records), true);
  TrainOptions small;
  small.passes.compute = job_passes(spec).compute;
  small.seed = 1;
  TrainStep train(model, backend, small);
  set_synthetic_inputs(train, model, 1, 1);
  const StepResult result = train.accumulate();
  Sha256 hash;
  add(hash, std::span<const double>(&result.loss, 1));
  for (const StateTensor& param : train.params()) add<float>(hash, train.grad(param.name));
  train.apply(1e-2);
  hash.update(train.weights_sha256());
  return fmt::format("{} {}", name_of(spec.train.precision), hash.finish().substr(0, kShownDigits));
}

}  // namespace lockstep
