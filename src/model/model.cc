#include "model/model.h"

#include <algorithm>

#include "base/philox.h"

namespace lockstep {
namespace {

// FNV-1a: a stable number for a name, so that adding or reordering parameters moves nobody else's draws.
uint64_t stream_of(const std::string& name) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

}  // namespace

int64_t parameter_count(const Model& model) {
  int64_t sum = 0;
  for (const GraphInput& input : model.graph.inputs())
    if (input.role == Role::kParam || input.role == Role::kFrozen)
      sum += model.graph.type(input.value).shape.numel();
  return sum;
}

void init_param(const ParamInit& init, uint64_t seed, int64_t first, std::span<float> values) {
  const auto begin = static_cast<uint64_t>(first);
  const Philox random(seed, stream_of(init.name));
  switch (init.kind) {
    case ParamInit::Kind::kConstant:
      std::fill(values.begin(), values.end(), static_cast<float>(init.a));
      break;
    case ParamInit::Kind::kNormal:
      random.fill_normal(values, static_cast<float>(init.a), static_cast<float>(init.b), begin);
      break;
    case ParamInit::Kind::kUniform:
      random.fill_uniform(values, static_cast<float>(init.a), static_cast<float>(init.b), begin);
      break;
  }
  const int64_t last = first + static_cast<int64_t>(values.size());
  for (int64_t i = std::max(first, init.zeros_begin); i < std::min(last, init.zeros_end); ++i)
    values[static_cast<size_t>(i - first)] = 0;
}

}  // namespace lockstep
