#include "prepare/pretrained.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/convert.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "job/open_model.h"
#include "model/hf/adapter_names.h"
#include "model/hf/source.h"
#include "prepare/some_names.h"

namespace lockstep {
namespace {

constexpr const char* kAdapterField = "train.lora.weights";

// Pieces that go to a device together; none becomes more than twice as wide as it is stored.
constexpr size_t kPiecesAtOnce = 64;
constexpr int64_t kStaged = 2 * kWeightPiece * static_cast<int64_t>(kPiecesAtOnce);

// A piece of a file's tensor on its way into the state.
struct StatePieceOfFile {
  StatePieceOfFile(const WeightPiece& piece, const StateTensor& to)
      : stored(piece),
        tensor(&to),
        first(piece.first / size_of(piece.tensor->spec().dtype) * size_of(to.dtype)),
        bytes(piece.bytes / size_of(piece.tensor->spec().dtype) * size_of(to.dtype)) {}

  WeightPiece stored;
  const StateTensor* tensor;
  int64_t first, bytes;     // of the tensor in the state
  std::byte* at = nullptr;  // in the host's memory: where it is made
};

// Takes pieces to the state. What the host can reach is made in place; to a device they go through two halves
// of pinned memory, so that one is copied while the other is filled.
class WeightUploads {
 public:
  explicit WeightUploads(TrainStep& train) : train_(train), backend_(train.backend()) {}

  void place(std::span<StatePieceOfFile> batch) {
    half_ = 1 - half_;
    Half& half = halves_[half_];
    if (half.sent) half.sent->wait();
    int64_t staged = 0;
    for (StatePieceOfFile& piece : batch) {
      if (in_place(piece)) {
        piece.at = static_cast<std::byte*>(piece.tensor->data) + piece.first;
        continue;
      }
      if (half.memory == nullptr) half.memory = backend_.allocate(kStaged, MemoryKind::kPinned);
      piece.at = static_cast<std::byte*>(half.memory->data()) + staged;
      staged += piece.bytes;
    }
  }

  // Those that follow each other in a tensor go in one copy.
  void send(std::span<const StatePieceOfFile> batch) {
    for (size_t i = 0; i < batch.size();) {
      const StatePieceOfFile& piece = batch[i++];
      if (in_place(piece)) continue;
      if (!piece.tensor->is_whole()) {
        train_.write_state(*piece.tensor, piece.first, {piece.at, static_cast<size_t>(piece.bytes)});
        continue;
      }
      int64_t bytes = piece.bytes;
      for (; i < batch.size() && batch[i].tensor == piece.tensor; ++i) bytes += batch[i].bytes;
      backend_.compute().copy(static_cast<std::byte*>(piece.tensor->data) + piece.first, piece.at, bytes);
    }
    halves_[half_].sent = backend_.compute().record();
  }

  void finish() { backend_.compute().synchronize(); }

 private:
  struct Half {
    std::unique_ptr<Buffer> memory;
    EventPtr sent;
  };
  bool in_place(const StatePieceOfFile& piece) const {
    return backend_.memory() == MemoryKind::kHost && piece.tensor->is_whole();
  }

  TrainStep& train_;
  Backend& backend_;
  std::array<Half, 2> halves_;
  size_t half_ = 0;
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
  std::vector<const StoredTensor*> tensors;
  for (const WeightMatch::Taken& taken : part.taken) tensors.push_back(taken.from);
  if (into == nullptr) return hashes ? hash_of_tensors(*part.files, std::move(tensors), pool) : std::string();
  std::map<std::string, const StateTensor*> by_name;
  for (const StateTensor& tensor : into->state().model()) by_name[tensor.name] = &tensor;
  std::map<const StoredTensor*, const StateTensor*> goes_to;
  for (const WeightMatch::Taken& taken : part.taken) goes_to[taken.from] = by_name.at(taken.name);
  std::vector<StatePieceOfFile> pieces;
  const std::vector<WeightPiece> stored = pieces_of(std::move(tensors));
  for (const WeightPiece& piece : stored) pieces.emplace_back(piece, *goes_to.at(piece.tensor));
  std::vector<std::string> found(hashes ? pieces.size() : 0);
  std::vector<std::vector<std::byte>> scratch(static_cast<size_t>(pool.threads()));
  WeightUploads uploads(*into);
  for (size_t begin = 0; begin < pieces.size(); begin += kPiecesAtOnce) {
    const auto batch = std::span(pieces).subspan(begin, std::min(kPiecesAtOnce, pieces.size() - begin));
    uploads.place(batch);
    pool.run_indexed(static_cast<int64_t>(batch.size()), [&](int64_t task, int thread) {
      const StatePieceOfFile& piece = batch[static_cast<size_t>(task)];
      const auto size = static_cast<size_t>(piece.stored.bytes);
      const DType from = piece.stored.tensor->spec().dtype;
      const bool same = from == piece.tensor->dtype;
      std::vector<std::byte>& other = scratch[static_cast<size_t>(thread)];
      if (!same) other.resize(size);
      const std::span<std::byte> bytes(same ? piece.at : other.data(), size);
      part.files->read(*piece.stored.tensor, piece.stored.first, bytes);
      if (hashes) {
        Sha256 hash;
        hash.update(bytes);
        found[begin + static_cast<size_t>(task)] = hash.finish();
      }
      if (!same)
        convert_elements(from, bytes.data(), piece.tensor->dtype, piece.at,
                         static_cast<int64_t>(bytes.size()) / size_of(from));
    });
    uploads.send(batch);
  }
  uploads.finish();
  return hashes ? hash_of_weights(stored, found) : std::string();
}

Identity shared_part(const Identity& identity) {
  Identity shared;
  for (const Identity::Field& field : identity.fields())
    if (field.name != kWeightsField && field.name != kAdapterField) shared.add(field.name, field.value);
  return shared;
}

}  // namespace lockstep
