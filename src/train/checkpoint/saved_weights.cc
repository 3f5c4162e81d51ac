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
  const int64_t bytes = entry.end - entry.begin;
  std::vector<std::byte> piece(static_cast<size_t>(std::min(kPiece, bytes)));
  for (int64_t first = 0; first < bytes; first += kPiece) {
    const auto part = std::span(piece).first(static_cast<size_t>(std::min(kPiece, bytes - first)));
    file.read(entry, part, first);
    sink(first, part);
  }
}

SavedWeights::SavedWeights(const CheckpointReader& checkpoint, const Graph& graph, Backend& backend) {
  const SafetensorsReader& model = checkpoint.tensors(kModelFile);
  const SafetensorsReader* averages =
      checkpoint.has_tensors(kAverageFile) ? &checkpoint.tensors(kAverageFile) : nullptr;
  std::vector<TensorSpec> wanted;
  for (const GraphInput& input : graph.inputs()) {
    if (input.role == Role::kInput) continue;
    const Type& type = graph.type(input.value);
    wanted.push_back({graph.name(input.value), type.dtype, type.shape});
  }
  if (const auto lines = misfits(model, wanted); !lines.empty())
    throw UserError("{} does not hold the weights of this model:\n  {}", checkpoint.path(),
                    fmt::join(lines, "\n  "));
  for (const TensorSpec& tensor : wanted) {
    const std::string average = average_name(tensor.name);
    const SafetensorsReader& file = averages != nullptr && averages->contains(average) ? *averages : model;
    const TensorEntry& entry =
        file.at(TensorSpec{&file == &model ? tensor.name : average, tensor.dtype, tensor.shape});
    buffers_.push_back(backend.allocate(entry.end - entry.begin));
    bytes_ += entry.end - entry.begin;
    auto* const device = static_cast<std::byte*>(buffers_.back()->data());
    read_tensor(file, entry, [&](int64_t first, std::span<const std::byte> piece) {
      backend.upload(device + first, piece.data(), static_cast<int64_t>(piece.size()));
    });
    addresses_[tensor.name] = device;
  }
}

void* SavedWeights::address(std::string_view name) const { return addresses_.at(std::string(name)); }

}  // namespace lockstep
