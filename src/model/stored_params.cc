#include "model/stored_params.h"

#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "model/frozen_params.h"
#include "ops/builder.h"

namespace lockstep {

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
  return with_graph(model, std::move(rewriter).finish(), model.params);
}

}  // namespace lockstep
