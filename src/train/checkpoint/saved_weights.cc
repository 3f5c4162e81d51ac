#include "train/checkpoint/saved_weights.h"

#include <algorithm>

#include "base/error.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/update/ema.h"

namespace lockstep {
namespace {

constexpr int64_t kPiece = 1 << 20;  // bytes

std::string text_of(const TensorSpec& tensor) {
  return fmt::format("{}{}", name_of(tensor.dtype), to_string(tensor.shape));
}

const TensorEntry* find(const SafetensorsReader& file, std::string_view name) {
  return file.contains(name) ? &file.at(name) : nullptr;
}

using ReadPiece = std::function<void(int64_t first_byte, std::span<std::byte> into)>;

void read_in_pieces(int64_t bytes, const TensorSink& sink, const ReadPiece& read) {
  std::vector<std::byte> piece(static_cast<size_t>(std::min(kPiece, bytes)));
  for (int64_t first = 0; first < bytes; first += kPiece) {
    const auto part = std::span(piece).first(static_cast<size_t>(std::min(kPiece, bytes - first)));
    read(first, part);
    sink(first, part);
  }
}

}  // namespace

std::vector<std::string> misfits(const SafetensorsReader& file, const std::vector<TensorSpec>& wanted) {
  std::vector<std::string> lines;
  for (const TensorSpec& tensor : wanted) {
    const TensorEntry* entry = find(file, tensor.name);
    if (entry == nullptr)
      lines.push_back(fmt::format("{} is not there", tensor.name));
    else if (entry->tensor.dtype != tensor.dtype || entry->tensor.shape != tensor.shape)
      lines.push_back(
          fmt::format("{} is {} there and {} here", tensor.name, text_of(entry->tensor), text_of(tensor)));
  }
  return lines;
}

void read_tensor(const SafetensorsReader& file, const TensorEntry& entry, const TensorSink& sink) {
  read_in_pieces(entry.end - entry.begin, sink,
                 [&](int64_t first, std::span<std::byte> into) { file.read(entry, into, first); });
}

SavedWeights::SavedWeights(const CheckpointReader& checkpoint, const HfSource* base, const Graph& graph,
                           Backend& backend) {
  const SafetensorsReader& model = checkpoint.weights();
  const SafetensorsReader* averages =
      checkpoint.has_tensors(kAverageFile) ? &checkpoint.tensors(kAverageFile) : nullptr;
  std::vector<TensorSpec> wanted, kept;
  for (const GraphInput& input : graph.inputs()) {
    if (input.role == Role::kInput) continue;
    const Type& type = graph.type(input.value);
    wanted.push_back({graph.name(input.value), type.dtype, type.shape});
    if (base == nullptr || model.contains(wanted.back().name) || base->find(wanted.back()) == nullptr)
      kept.push_back(wanted.back());
  }
  if (const auto lines = misfits(model, kept); !lines.empty())
    throw UserError("{} does not hold the weights of this model:\n  {}", checkpoint.path(),
                    fmt::join(lines, "\n  "));
  for (const TensorSpec& tensor : wanted) {
    buffers_.push_back(backend.allocate(tensor.bytes()));
    bytes_ += tensor.bytes();
    auto* const device = static_cast<std::byte*>(buffers_.back()->data());
    addresses_[tensor.name] = device;
    const TensorSink upload = [&](int64_t first, std::span<const std::byte> piece) {
      backend.upload(device + first, piece.data(), static_cast<int64_t>(piece.size()));
    };
    const std::string average = average_name(tensor.name);
    if (averages != nullptr && averages->contains(average))
      read_tensor(*averages, averages->at(TensorSpec{average, tensor.dtype, tensor.shape}), upload);
    else if (model.contains(tensor.name))
      read_tensor(model, model.at(tensor), upload);
    else
      read_in_pieces(tensor.bytes(), upload, [&](int64_t first, std::span<std::byte> into) {
        base->files()->read(*base->find(tensor), first, into);
      });
  }
}

void* SavedWeights::address(std::string_view name) const { return addresses_.at(std::string(name)); }

}  // namespace lockstep
