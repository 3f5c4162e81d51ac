#include "train/step/synthetic.h"

#include <vector>

#include "base/philox.h"
#include "graph/op_def.h"

namespace lockstep {
namespace {

int64_t integer_bound(const Model& model, const std::string& name) {
  for (const auto& [input, bound] : model.integer_inputs)
    if (input == name) return bound;
  return 2;
}

template <typename T, typename Draw>
void fill(TrainStep& train, const std::string& name, int64_t count, const Draw& draw) {
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(draw(static_cast<uint64_t>(i)));
  train.set_input(name, values.data(), count * static_cast<int64_t>(sizeof(T)));
}

}  // namespace

void set_synthetic_inputs(TrainStep& train, const Model& model, uint64_t seed, int64_t step) {
  uint64_t index = 0;
  for (const GraphInput& input : model.graph.inputs()) {
    if (input.role != Role::kInput) continue;
    const Type& type = model.graph.type(input.value);
    const std::string& name = model.graph.name(input.value);
    const Philox random(seed, static_cast<uint64_t>(step) * 4096 + index++);
    if (!train.has_input(name)) continue;  // another stage's
    const int64_t bound = integer_bound(model, name);
    const auto integer = [&](uint64_t i) {
      return static_cast<int64_t>(random.uniform(i) * static_cast<float>(bound));
    };
    switch (type.dtype) {
      case DType::kI32: fill<int32_t>(train, name, type.shape.numel(), integer); break;
      case DType::kI64:
        fill<int64_t>(train, name, type.shape.numel(),
                      [&](uint64_t i) { return i == 0 ? static_cast<int64_t>(seed) : step; });
        break;
      case DType::kU8: fill<uint8_t>(train, name, type.shape.numel(), [](uint64_t) { return 1; }); break;
      default:
        if (name == "labels")
          fill<float>(train, name, type.shape.numel(), integer);
        else
          fill<float>(train, name, type.shape.numel(), [&](uint64_t i) { return random.normal(i); });
    }
  }
}

}  // namespace lockstep
