#include "train/evaluate/evaluation_units.h"

#include <algorithm>

#include "train/sums/unit_gathers.h"

namespace lockstep {
namespace {

struct Param {
  std::string name;
  Type type;
  int64_t block = 0;
};

std::vector<Param> params_in_order(const Graph& graph,
                                   const std::function<bool(std::string_view param)>& is_whole) {
  const std::vector<int64_t> blocks = first_blocks(graph);
  std::vector<Param> params;
  for (const GraphInput& input : graph.inputs()) {
    if (input.role != Role::kParam && input.role != Role::kFrozen) continue;
    const std::string& name = graph.name(input.value);
    if (is_whole(name)) continue;
    params.push_back({name, graph.type(input.value), blocks[static_cast<size_t>(input.value.id)]});
  }
  std::ranges::stable_sort(params, {}, &Param::block);
  return params;
}

// Of a unit: its parameters' own, where they agree.
DType element_of(const std::vector<Param>& params) {
  for (const Param& param : params)
    if (param.type.dtype != params[0].type.dtype) return DType::kF32;
  return params.empty() ? DType::kF32 : params[0].type.dtype;
}

}  // namespace

std::vector<ParamUnit> evaluation_units(const Graph& evaluation,
                                        const std::function<bool(std::string_view param)>& is_whole,
                                        int64_t bucket_bytes) {
  const std::vector<Param> params = params_in_order(evaluation, is_whole);
  if (params.empty()) return {};
  FlatLayout layout(element_of(params));
  const int64_t element = size_of(layout.dtype());
  for (const Param& param : params)
    layout.add(param.name, {(param.type.bytes() + element - 1) / element}, param.block);
  return param_units(layout, Buckets::of_parameters(layout, bucket_bytes, true));
}

}  // namespace lockstep
