#include "run/merged_weights.h"

#include <algorithm>

#include "base/cores.h"
#include "base/error.h"
#include "job/open_model.h"

namespace lockstep {
namespace {

void read_as_f32(const TrainedModel& model, const TensorSpec& tensor, int64_t first, std::span<float> into) {
  const int64_t size = size_of(tensor.dtype);
  if (tensor.dtype == DType::kF32) return model.read(tensor, first * size, std::as_writable_bytes(into));
  std::vector<std::byte> stored(into.size() * static_cast<size_t>(size));
  model.read(tensor, first * size, stored);
  for (size_t i = 0; i < into.size(); ++i)
    into[i] = static_cast<float>(read_element(tensor.dtype, stored.data(), static_cast<int64_t>(i)));
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

MergedWeights::MergedWeights(const TrainedModel& model, bool merge)
    : model_(model), pool_(available_cores().usable) {
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
  scale_ = settings.scale();
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

void MergedWeights::read(const TensorSpec& tensor, int64_t first, std::span<float> into) const {
  read_as_f32(model_, tensor, first, into);
  if (const auto found = adapted_.find(tensor.name); found != adapted_.end())
    add_product(matrices_of(found->second), first, into);
}

const MergedWeights::Matrices& MergedWeights::matrices_of(const LinearLayer& layer) const {
  if (!last_ || last_->layer.module != layer.module)
    last_ = Matrices{layer, read_whole(model_, lora_a_name(layer.module)),
                     read_whole(model_, lora_b_name(layer.module))};
  return *last_;
}

// Each element is a sum of its own, so it does not matter how they are cut.
void MergedWeights::add_product(const Matrices& m, int64_t first, std::span<float> into) const {
  constexpr size_t kTask = size_t{1} << 14;
  pool_.run(static_cast<int64_t>((into.size() + kTask - 1) / kTask), [&](int64_t task) {
    const size_t begin = static_cast<size_t>(task) * kTask;
    add_rows(m, first + static_cast<int64_t>(begin),
             into.subspan(begin, std::min(kTask, into.size() - begin)));
  });
}

// Sums over the rank in its order, whatever part of the tensor is asked for.
void MergedWeights::add_rows(const Matrices& m, int64_t first, std::span<float> into) const {
  const int64_t width = m.layer.in_out ? m.layer.out : m.layer.in;
  std::vector<float> sums;
  for (size_t done = 0; done < into.size();) {
    const int64_t row = (first + static_cast<int64_t>(done)) / width;
    const int64_t column = (first + static_cast<int64_t>(done)) % width;
    const auto count = std::min(into.size() - done, static_cast<size_t>(width - column));
    sums.assign(count, 0.0f);
    for (int64_t r = 0; r < rank_; ++r) {
      // W [out, in]: B[row, r] times a row of A. W [in, out]: A[r, row] times a column of B.
      const float factor = m.layer.in_out ? m.a[static_cast<size_t>(r * m.layer.in + row)]
                                          : m.b[static_cast<size_t>(row * rank_ + r)];
      const float* const other =
          m.layer.in_out ? m.b.data() + column * rank_ + r : m.a.data() + r * m.layer.in + column;
      const int64_t stride = m.layer.in_out ? rank_ : 1;
      for (size_t i = 0; i < count; ++i) sums[i] += factor * other[static_cast<int64_t>(i) * stride];
    }
    for (size_t i = 0; i < count; ++i) into[done + i] += static_cast<float>(scale_) * sums[i];
    done += count;
  }
}

}  // namespace lockstep
