#include "prepare/pretrained.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "job/open_model.h"
#include "model/hf/adapter_names.h"
#include "model/hf/source.h"
#include "prepare/some_names.h"

namespace lockstep {
namespace {

constexpr const char* kWeightsField = "model.weights";
constexpr const char* kAdapterField = "train.lora.weights";

// Pieces that are converted together, each into so much memory: none becomes more than twice as wide.
constexpr size_t kElementsAtOnce = 32;
constexpr size_t kStaged = 2 * kWeightPiece;

void convert(DType from, std::span<const std::byte> source, DType to, std::byte* target) {
  const auto size = static_cast<size_t>(size_of(from));
  const auto count = static_cast<int64_t>(source.size() / size);
  if (from == to) {
    std::memcpy(target, source.data(), source.size());
    return;
  }
  if (from == DType::kBF16 && to == DType::kF32) {
    for (int64_t i = 0; i < count; ++i) {
      uint16_t narrow;
      std::memcpy(&narrow, source.data() + 2 * i, sizeof(narrow));
      const uint32_t wide = static_cast<uint32_t>(narrow) << 16;
      std::memcpy(target + 4 * i, &wide, sizeof(wide));
    }
    return;
  }
  // Files need not be aligned.
  std::byte one[sizeof(double)];
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(one, source.data() + static_cast<size_t>(i) * size, size);
    write_element(to, target, i, read_element(from, one, 0));
  }
}

// The adapter's tensors, each the parameter of its name; those of modules that it holds as a whole have
// PEFT's prefix.
std::vector<WeightMatch::Taken> match_adapter(const HfWeightFiles& files, const Model& model,
                                              std::string_view model_type) {
  std::vector<WeightMatch::Taken> taken;
  std::vector<std::string> problems;
  std::set<const StoredTensor*> used;
  for (const TensorSpec& tensor : parameter_specs(model)) {
    const bool lora = is_lora_name(tensor.name);
    const std::string name = lora ? tensor.name : std::string(kAdapterPrefix) + tensor.name;
    const StoredTensor* found = files.find(adapter_name(model_type, name));
    if (found == nullptr) {
      if (lora) problems.push_back(fmt::format("{} is not there", tensor.name));
      continue;
    }
    used.insert(found);
    if (found->spec().shape != tensor.shape)
      problems.push_back(fmt::format("{} is {} there and {} here", tensor.name,
                                     to_string(found->spec().shape), to_string(tensor.shape)));
    else if (!is_floating(found->spec().dtype))
      problems.push_back(fmt::format("{} is {}", tensor.name, name_of(found->spec().dtype)));
    else
      taken.push_back({tensor.name, found});
  }
  for (const StoredTensor& tensor : files.tensors())
    if (!used.contains(&tensor))
      problems.push_back(fmt::format("{} is there, and this model has no such tensor", tensor.spec().name));
  if (!problems.empty())
    throw UserError("{}: the adapter does not fit the model:\n  {}", files.folder(),
                    fmt::join(first_few(problems), "\n  "));
  return taken;
}

}  // namespace

std::optional<PretrainedWeights> PretrainedWeights::of_job(const JobSpec& spec, const Model& model) {
  PretrainedWeights weights;
  const auto& source = spec.model.source;
  if (source != nullptr && source->files() != nullptr) {
    // Shares the life of the source.
    const std::shared_ptr<const HfWeightFiles> files(source, source->files());
    weights.parts_.push_back({kWeightsField, files, source->match().taken});
    weights.drawn_ = source->match().drawn;
    weights.unused_ = source->match().unused;
  }
  if (!spec.train.lora.from.empty()) {
    try {
      const auto files = std::make_shared<const HfWeightFiles>(spec.train.lora.from, "adapter_model");
      weights.parts_.push_back(
          {kAdapterField, files, match_adapter(*files, model, source ? source->model().model_type : "")});
    } catch (const UserError& error) {
      throw UserError("{}: train.lora.from: {}", spec.where("train.lora.from"), error.what());
    }
  }
  if (weights.parts_.empty()) return std::nullopt;
  return weights;
}

std::string PretrainedWeights::text() const {
  std::vector<std::string> parts;
  for (const Part& part : parts_)
    parts.push_back(fmt::format("{} tensors of {}", part.taken.size(), part.files->folder()));
  std::string text = fmt::format("{}", fmt::join(parts, ", "));
  if (!drawn_.empty()) text += fmt::format("; drawn: {}", some_names(drawn_));
  if (!unused_.empty()) text += fmt::format("; not used: {}", some_names(unused_));
  return text;
}

void PretrainedWeights::mark_given(Model& model) const {
  std::set<std::string> given;
  for (const Part& part : parts_)
    for (const WeightMatch::Taken& taken : part.taken) given.insert(taken.name);
  for (ParamInit& init : model.params) init.given = given.contains(init.name);
}

void PretrainedWeights::read(int threads, Identity* identity, TrainStep* into) const {
  ThreadPool pool(threads);
  if (into != nullptr) into->state().gate().wait();
  for (const Part& part : parts_) {
    const std::string hash = read(part, pool, identity != nullptr, into);
    if (identity != nullptr) identity->add(part.field, hash);
  }
  if (into != nullptr) into->state().begin_averages();
}

std::string PretrainedWeights::read(const Part& part, ThreadPool& pool, bool hashes, TrainStep* into) {
  std::map<std::string, const StateTensor*> by_name;
  if (into != nullptr)
    for (const StateTensor& tensor : into->state().model()) by_name[tensor.name] = &tensor;
  std::vector<const StoredTensor*> tensors;
  std::map<const StoredTensor*, const StateTensor*> goes_to;
  for (const WeightMatch::Taken& taken : part.taken) {
    tensors.push_back(taken.from);
    if (into != nullptr) goes_to[taken.from] = by_name.at(taken.name);
  }
  const std::vector<WeightPiece> pieces = pieces_of(std::move(tensors));
  std::vector<std::string> found(hashes ? pieces.size() : 0);
  std::vector<std::byte> staging(into == nullptr ? 0 : kElementsAtOnce * kStaged);
  for (size_t begin = 0; begin < pieces.size(); begin += kElementsAtOnce) {
    const size_t count = std::min(kElementsAtOnce, pieces.size() - begin);
    pool.run(static_cast<int64_t>(count), [&](int64_t task) {
      const auto i = static_cast<size_t>(task);
      const WeightPiece& piece = pieces[begin + i];
      const FileMapping mapped = part.files->map(*piece.tensor, piece.first, piece.bytes);
      if (hashes) {
        Sha256 hash;
        hash.update(mapped.bytes());
        found[begin + i] = hash.finish();
      }
      if (into != nullptr)
        convert(piece.tensor->spec().dtype, mapped.bytes(), goes_to.at(piece.tensor)->dtype,
                staging.data() + i * kStaged);
    });
    for (size_t i = 0; into != nullptr && i < count; ++i) {
      const WeightPiece& piece = pieces[begin + i];
      const StateTensor& to = *goes_to.at(piece.tensor);
      const int64_t from_size = size_of(piece.tensor->spec().dtype), size = size_of(to.dtype);
      into->write_state(to, piece.first / from_size * size,
                        {staging.data() + i * kStaged, static_cast<size_t>(piece.bytes / from_size * size)});
    }
  }
  return hashes ? hash_of_weights(pieces, found) : std::string();
}

Identity shared_part(const Identity& identity) {
  Identity shared;
  for (const Identity::Field& field : identity.fields())
    if (field.name != kWeightsField && field.name != kAdapterField) shared.add(field.name, field.value);
  return shared;
}

}  // namespace lockstep
