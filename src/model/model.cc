#include "model/model.h"

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

RandomFill random_fill(const ParamInit& init, uint64_t seed) {
  return {init.kind,     static_cast<float>(init.a), static_cast<float>(init.b),
          seed,          stream_of(init.name),       init.zeros_begin,
          init.zeros_end};
}

void init_param(const ParamInit& init, uint64_t seed, int64_t first, std::span<float> values) {
  random_fill(init, seed).fill(first, values);
}

}  // namespace lockstep
