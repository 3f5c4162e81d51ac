#include "model/frozen_params.h"

#include <map>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "ops/builder.h"

namespace lockstep {

Model with_graph(const Model& model, Graph graph, const std::vector<ParamInit>& starts) {
  std::map<std::string, const ParamInit*> by_name;
  for (const ParamInit& start : starts) by_name[start.name] = &start;
  Model result = {std::move(graph),     {},         model.samples,    model.tokens,
                  model.integer_inputs, model.task, model.statistics, model.statistics_momentum,
                  model.target};
  for (const GraphInput& input : result.graph.inputs()) {
    if (input.role != Role::kParam && input.role != Role::kFrozen) continue;
    const std::string& name = result.graph.name(input.value);
    const auto found = by_name.find(name);
    LOCKSTEP_CHECK(found != by_name.end(), "parameter {} has no start", name);
    result.params.push_back(*found->second);
    result.params.back().dtype = result.graph.type(input.value).dtype;
    result.params.back().frozen = input.role == Role::kFrozen;
  }
  return result;
}

Model with_frozen(const Model& model, const FrozenType& frozen) {
  const Graph& old = model.graph;
  const auto type_of = [&](Value input) -> std::optional<DType> {
    return old.role(input) == Role::kParam ? frozen(old.name(input)) : std::nullopt;
  };
  Rewriter rewriter(old, [&](Value input) { return !type_of(input); });
  Builder b(rewriter.graph());
  for (const GraphInput& input : old.inputs()) {
    const std::optional<DType> dtype = type_of(input.value);
    if (!dtype) continue;
    const Type& type = old.type(input.value);
    rewriter.map(input.value, b.cast(b.param(old.name(input.value), type.shape, *dtype, true), type.dtype));
  }
  for (const Node& node : old.nodes()) rewriter.copy(node);
  return with_graph(model, std::move(rewriter).finish(), model.params);
}

}  // namespace lockstep
