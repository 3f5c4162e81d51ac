#include "run/merged_weights.h"

#include <algorithm>

#include "base/convert.h"
#include "base/error.h"
#include "job/open_model.h"

namespace lockstep {
namespace {

void read_as_f32(const TrainedModel& model, const TensorSpec& tensor, int64_t first, std::span<float> into) {
  const int64_t size = size_of(tensor.dtype);
  if (tensor.dtype == DType::kF32) return model.read(tensor, first * size, std::as_writable_bytes(into));
  std::vector<std::byte> stored(into.size() * static_cast<size_t>(size));
  model.read(tensor, first * size, stored);
  convert_elements(tensor.dtype, stored.data(), DType::kF32, into.data(), static_cast<int64_t>(into.size()));
}

const TensorSpec& spec_of(const TrainedModel& model, const std::string& name) {
  const auto found = std::ranges::find(model.weights(), name, &TensorSpec::name);
  LOCKSTEP_CHECK(found != model.weights().end(), "the run has no tensor {}", name);
  return *found;
}

}  // namespace

std::vector<float> read_whole(const TrainedModel& model, const std::string& name) {
  const TensorSpec& tensor = spec_of(model, name);
  std::vector<float> values(static_cast<size_t>(tensor.shape.numel()));
  read_as_f32(model, tensor, 0, values);
  return values;
}

MergedWeights::MergedWeights(const TrainedModel& model, bool merge) : model_(model) {
  const JobSpec& spec = model.spec();
  if (uses_lora(spec) && !merge)
    throw UserError(
        "{} holds matrices of LoRA beside the model's weights: say --merge to add them, or --to peft to "
        "write them as an adapter",
        model.path());
  if (merge && !uses_lora(spec))
    throw UserError("--merge: {} was not trained with LoRA; leave it out", model.path());
  for (const TensorSpec& tensor : model.weights())
    if (!is_lora_name(tensor.name)) tensors_.push_back(tensor);
  if (!merge) return;
  const LoraSettings settings = lora_settings(spec);
  scale_ = static_cast<float>(settings.scale());
  rank_ = settings.rank;
  for (const LinearLayer& layer :
       adapted_layers(spec.model.family->build(spec.model, model.inputs(), 1, false), settings.modules))
    adapted_.emplace(layer.module + ".weight", layer);
}

DType MergedWeights::widest() const {
  const auto is = [&](DType dtype) {
    return std::ranges::all_of(tensors_, [&](const TensorSpec& tensor) { return tensor.dtype == dtype; });
  };
  return is(DType::kBF16) ? DType::kBF16 : is(DType::kF16) ? DType::kF16 : DType::kF32;
}

MergedTensor MergedWeights::open(const std::string& name) const {
  MergedTensor tensor(model_, spec_of(model_, name));
  if (const auto found = adapted_.find(name); found != adapted_.end())
    tensor.adapted_ = {found->second, read_whole(model_, lora_a_name(found->second.module)),
                       read_whole(model_, lora_b_name(found->second.module)), rank_, scale_};
  return tensor;
}

void MergedTensor::read_stored(int64_t first, std::span<std::byte> into) const {
  model_->read(tensor_, first, into);
}

// Sums over the rank in its order, whatever part of the tensor is asked for.
void MergedTensor::read(int64_t first, std::span<float> into) const {
  read_as_f32(*model_, tensor_, first, into);
  if (!adapted_) return;
  const Adapted& m = *adapted_;
  const int64_t width = m.layer.in_out ? m.layer.out : m.layer.in;
  std::vector<float> sums;
  for (size_t done = 0; done < into.size();) {
    const int64_t row = (first + static_cast<int64_t>(done)) / width;
    const int64_t column = (first + static_cast<int64_t>(done)) % width;
    const auto count = std::min(into.size() - done, static_cast<size_t>(width - column));
    sums.assign(count, 0.0f);
    for (int64_t r = 0; r < m.rank; ++r) {
      // W [out, in]: B[row, r] times a row of A. W [in, out]: A[r, row] times a column of B.
      if (!m.layer.in_out) {
        const float factor = m.b[static_cast<size_t>(row * m.rank + r)];
        const float* const other = m.a.data() + r * m.layer.in + column;
        for (size_t i = 0; i < count; ++i) sums[i] += factor * other[i];
        continue;
      }
      const float factor = m.a[static_cast<size_t>(r * m.layer.in + row)];
      const float* const other = m.b.data() + column * m.rank + r;
      for (size_t i = 0; i < count; ++i) sums[i] += factor * other[static_cast<int64_t>(i) * m.rank];
    }
    for (size_t i = 0; i < count; ++i) into[done + i] += m.scale * sums[i];
    done += count;
  }
}

}  // namespace lockstep
