#include "train/guard/bad_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/number_text.h"
#include "data/source/source.h"
#include "graph/op_def.h"

namespace lockstep {
namespace {

std::optional<int64_t> bound_of(const Model& model, const std::string& name) {
  for (const auto& [input, bound] : model.integer_inputs)
    if (input == name) return bound;
  return std::nullopt;
}

bool is_label(const std::string& name) { return name == "labels" || name == "targets"; }

// What is wrong with a value, or nothing.
std::string wrong(const std::string& name, DType dtype, double x, std::optional<int64_t> bound) {
  if (is_floating(dtype)) return std::isfinite(x) ? "" : short_number(x);
  if (!bound || (is_label(name) && x == kIgnoredLabel)) return "";
  return x >= 0 && x < static_cast<double>(*bound) ? "" : fmt::format("{}, outside [0, {})", x, *bound);
}

}  // namespace

std::optional<BadInput> find_bad_input(Executable& executable, Backend& backend, const Model& model) {
  const Graph& graph = executable.graph();
  std::vector<char> host;
  for (const GraphInput& input : graph.inputs()) {
    const Type& type = graph.type(input.value);
    const std::string& name = graph.name(input.value);
    const auto bound = bound_of(model, name);
    if (input.role != Role::kInput || type.bytes() == 0 || (!is_floating(type.dtype) && !bound)) continue;
    host.resize(static_cast<size_t>(type.bytes()));
    backend.download(host.data(), executable.address_of(input.value), type.bytes());
    for (int64_t i = 0; i < type.shape.numel(); ++i) {
      const std::string value = wrong(name, type.dtype, read_element(type.dtype, host.data(), i), bound);
      if (value.empty()) continue;
      const int64_t rows = type.shape.rank() == 0 ? 1 : type.shape[0];
      return BadInput{name, i / std::max<int64_t>(1, type.shape.numel() / rows), "", value};
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
