#include "prepare/pretrained.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/thread_pool.h"
#include "job/open_model.h"
#include "model/hf/adapter_names.h"
#include "model/hf/source.h"
#include "prepare/some_names.h"

namespace lockstep {
namespace {

constexpr const char* kWeightsField = "model.weights";
constexpr const char* kAdapterField = "train.lora.weights";

// Elements that one thread converts at a time, and how many such pieces are staged together.
constexpr int64_t kElements = 1 << 16;
constexpr size_t kAtOnce = 64;

void convert(DType from, const std::byte* source, DType to, std::byte* target, int64_t count) {
  if (from == DType::kBF16 && to == DType::kF32) {
    for (int64_t i = 0; i < count; ++i) {
      uint16_t narrow;
      std::memcpy(&narrow, source + 2 * i, sizeof(narrow));
      const uint32_t wide = static_cast<uint32_t>(narrow) << 16;
      std::memcpy(target + 4 * i, &wide, sizeof(wide));
    }
    return;
  }
  // Files need not be aligned.
  std::byte one[sizeof(double)];
  const auto size = static_cast<size_t>(size_of(from));
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(one, source + static_cast<size_t>(i) * size, size);
    write_element(to, target, i, read_element(from, one, 0));
  }
}

struct Piece {
  const StoredTensor* from;
  const StateTensor* to;
  int64_t first, count;
};

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

void PretrainedWeights::add_to_identity(Identity& identity, int threads) const {
  ThreadPool pool(threads);
  for (const Part& part : parts_) {
    std::vector<const StoredTensor*> tensors;
    for (const WeightMatch::Taken& taken : part.taken) tensors.push_back(taken.from);
    identity.add(part.field, part.files->sha256(std::move(tensors), pool));
  }
}

void PretrainedWeights::load(TrainStep& train) const {
  const TrainState& state = train.state();
  Backend& backend = train.backend();
  state.gate().wait();
  std::map<std::string, const StateTensor*> by_name;
  for (const StateTensor& tensor : state.model()) by_name[tensor.name] = &tensor;
  ThreadPool pool(backend.host_threads());
  constexpr int64_t kWidest = 4;
  std::vector<std::byte> staging(kAtOnce * kElements * kWidest);
  for (const Part& part : parts_) {
    std::vector<Piece> pieces;
    for (const WeightMatch::Taken& taken : part.taken) {
      const StateTensor* to = by_name.at(taken.name);
      for (int64_t first = 0; first < to->shape.numel(); first += kElements)
        pieces.push_back({taken.from, to, first, std::min(kElements, to->shape.numel() - first)});
    }
    for (size_t begin = 0; begin < pieces.size(); begin += kAtOnce) {
      const size_t count = std::min(kAtOnce, pieces.size() - begin);
      const auto staged = [&](size_t i) { return staging.data() + i * kElements * kWidest; };
      pool.run(static_cast<int64_t>(count), [&](int64_t task) {
        const auto i = static_cast<size_t>(task);
        const Piece& piece = pieces[begin + i];
        const DType from = piece.from->spec().dtype;
        const FileMapping mapped =
            part.files->map(*piece.from, piece.first * size_of(from), piece.count * size_of(from));
        if (from == piece.to->dtype)
          std::memcpy(staged(i), mapped.bytes().data(), mapped.bytes().size());
        else
          convert(from, mapped.bytes().data(), piece.to->dtype, staged(i), piece.count);
      });
      for (size_t i = 0; i < count; ++i) {
        const Piece& piece = pieces[begin + i];
        const int64_t size = size_of(piece.to->dtype);
        backend.upload(static_cast<std::byte*>(piece.to->data) + piece.first * size, staged(i),
                       piece.count * size);
      }
    }
  }
  state.begin_averages();
}

Identity shared_part(const Identity& identity) {
  Identity shared;
  for (const Identity::Field& field : identity.fields())
    if (field.name != kWeightsField && field.name != kAdapterField) shared.add(field.name, field.value);
  return shared;
}

}  // namespace lockstep
