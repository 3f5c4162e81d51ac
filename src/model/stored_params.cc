#include "model/stored_params.h"

#include <algorithm>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "ops/builder.h"

namespace lockstep {
namespace {

ParamInit init_of(const Model& model, const std::string& name) {
  const auto found = std::ranges::find(model.params, name, &ParamInit::name);
  LOCKSTEP_CHECK(found != model.params.end(), "parameter {} has no start", name);
  return *found;
}

}  // namespace

Model stored_in(DType dtype, const Model& model) {
  const Graph& old = model.graph;
  Rewriter rewriter(old, [&](Value input) { return old.role(input) != Role::kParam; });
  Builder b(rewriter.graph());
  for (const GraphInput& input : old.inputs()) {
    if (input.role != Role::kParam) continue;
    const Type& type = old.type(input.value);
    const Value stored = b.param(old.name(input.value), type.shape, dtype);
    rewriter.map(input.value, b.cast(stored, type.dtype));
  }
  for (const Node& node : old.nodes()) rewriter.copy(node);
  Model result{std::move(rewriter).finish(), {},         model.samples,    model.tokens,
               model.integer_inputs,         model.task, model.statistics, model.statistics_momentum};
  // In the order of the new graph's inputs, where trained ones come last.
  for (const GraphInput& input : result.graph.inputs()) {
    if (input.role != Role::kParam && input.role != Role::kFrozen) continue;
    result.params.push_back(init_of(model, result.graph.name(input.value)));
    if (input.role == Role::kParam) result.params.back().dtype = dtype;
  }
  return result;
}

}  // namespace lockstep
