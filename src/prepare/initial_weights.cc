#include "prepare/initial_weights.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/sha256.h"
#include "prepare/some_names.h"
#include "prepare/trained_params.h"
#include "prepare/trained_run.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/checkpoint/saved_weights.h"

namespace lockstep {
namespace {

std::vector<TensorSpec> tensors_of(const Model& model) {
  std::vector<TensorSpec> tensors;
  for (const GraphInput& input : model.graph.inputs()) {
    const bool of_model =
        input.role == Role::kParam || input.role == Role::kFrozen || input.role == Role::kStatistic;
    const Type& type = model.graph.type(input.value);
    if (of_model) tensors.push_back({model.graph.name(input.value), type.dtype, type.shape});
  }
  return tensors;
}

void check_patterns(const JobSpec& spec, const std::vector<TensorSpec>& tensors) {
  const auto check = [&](const char* key, const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns)
      if (std::none_of(tensors.begin(), tensors.end(),
                       [&](const TensorSpec& tensor) { return fits_pattern({pattern}, tensor.name); }))
        throw UserError("{}: {} names '{}', which fits no parameter of this model; the first is {}",
                        spec.where(key), key, pattern, tensors.front().name);
  };
  check("train.init_from.only", spec.train.init_from.only);
  check("train.init_from.except", spec.train.init_from.except);
}

std::string sha256_in_manifest(const std::string& checkpoint) {
  for (const FileRecord& file : read_manifest(checkpoint).files)
    if (file.name == kModelFile || file.name == kTrainedFile) return file.sha256;
  throw UserError("{}: there are no weights in it", checkpoint);
}

// It would go on from there, or with --fresh remove what it starts from.
void refuse_own_output(const JobSpec& spec, const std::string& checkpoint) {
  const auto real = [](const std::string& path) { return std::filesystem::weakly_canonical(path); };
  const std::string& own = spec.checkpoint.dir.empty() ? spec.output : spec.checkpoint.dir;
  if (real(checkpoint).parent_path() == real(own))
    throw UserError("{}: train.init_from.run is what this job itself writes; give it another `output`",
                    spec.where("train.init_from.run"));
}

}  // namespace

std::string InitialWeights::text() const {
  std::string text = fmt::format("{} tensors of {}", taken.size(), checkpoint);
  if (!drawn.empty()) text += fmt::format("; drawn: {}", some_names(drawn));
  return text;
}

std::optional<InitialWeights> job_initial_weights(const JobSpec& spec, const Model& model) {
  const InitFromSpec& from = spec.train.init_from;
  constexpr const char* kRun = "train.init_from.run";
  if (from.run.empty()) {
    if (!from.only.empty() || !from.except.empty())
      throw UserError("{}: train.init_from does not say which run to start from; write {}", spec.file, kRun);
    return std::nullopt;
  }
  InitialWeights weights;
  try {
    weights.checkpoint = find_checkpoint(from.run);
  } catch (const UserError& error) {
    throw UserError("{}: {}: {}", spec.where(kRun), kRun, error.what());
  }
  refuse_own_output(spec, weights.checkpoint);
  const std::vector<TensorSpec> tensors = tensors_of(model);
  check_patterns(spec, tensors);
  weights.sha256 = sha256_in_manifest(weights.checkpoint);
  const auto in_checkpoint = [&](const char* name) {
    return (std::filesystem::path(weights.checkpoint) / name).string();
  };
  const bool whole = std::filesystem::exists(in_checkpoint(kModelFile));
  const SafetensorsReader file(in_checkpoint(whole ? kModelFile : kTrainedFile));
  std::vector<TensorSpec> wanted;
  for (const TensorSpec& tensor : tensors) {
    const bool takes = (from.only.empty() || fits_pattern(from.only, tensor.name)) &&
                       !fits_pattern(from.except, tensor.name);
    (takes ? weights.taken : weights.drawn).push_back(tensor.name);
    if (takes) wanted.push_back(tensor);
  }
  std::vector<std::string> problems = misfits(file, wanted);
  // Where everything is taken, nothing of the other model may be lost without a word.
  if (from.only.empty() && from.except.empty()) {
    std::set<std::string> known;
    for (const TensorSpec& tensor : tensors) known.insert(tensor.name);
    for (const TensorEntry& entry : file.tensors())
      if (!known.contains(entry.tensor.name))
        problems.push_back(fmt::format("{} is there, and this model has no such tensor", entry.tensor.name));
  }
  if (!problems.empty())
    throw UserError(
        "{}: {}: the weights of {} do not fit this model:\n  {}\ntake those that do with "
        "train.init_from.only or train.init_from.except, or make the models alike{}",
        spec.where(kRun), kRun, weights.checkpoint, fmt::join(problems, "\n  "),
        whole ? ""
              : fmt::format("; it holds what LoRA trained alone: lockstep export {} --to hf --merge writes a "
                            "folder for model.hf that has all of it",
                            weights.checkpoint));
  if (weights.taken.empty())
    throw UserError("{}: train.init_from takes no parameter; leave it out, or widen its patterns",
                    spec.where(kRun));
  return weights;
}

void add_to_identity(const InitialWeights& weights, Identity& identity) {
  identity.add("train.init_from.weights", weights.sha256);
  // By its hash: a model may have hundreds.
  identity.add("train.init_from.taken", sha256(fmt::format("{}", fmt::join(weights.taken, "\n"))));
}

void start_from(const InitialWeights& weights, TrainStep& train) {
  const CheckpointReader checkpoint(weights.checkpoint);
  if (sha256_in_manifest(weights.checkpoint) != weights.sha256)
    throw UserError("{}: the weights were changed while the run began; start it again", weights.checkpoint);
  const SafetensorsReader& file = checkpoint.weights();
  const TrainState& state = train.state();
  state.gate().wait();
  const std::set<std::string> taken(weights.taken.begin(), weights.taken.end());
  for (const StateTensor& tensor : state.model())
    if (taken.contains(tensor.name))
      read_tensor(
          file, file.at(TensorSpec{tensor.name, tensor.dtype, tensor.shape}),
          [&](int64_t first, std::span<const std::byte> piece) { train.write_state(tensor, first, piece); });
  state.begin_averages();
}

}  // namespace lockstep
