// What all pointwise ops share: the shape rule, the sharding rule and the cost. Each op's own file gives its
// formula and its gradient.
#pragma once
#include "graph/op_def.h"

namespace lockstep {

// All operands equal in type and numbers, not bool; the result has that type.
std::vector<Type> infer_pointwise(const InferContext& context);
// The same for functions that only make sense on floating types.
std::vector<Type> infer_floating_pointwise(const InferContext& context);
// Split along any axis together, or all replicated.
std::vector<ShardingSignature> shard_pointwise(const Graph& graph, const Node& node);
// Of a linear op: or all partial, since the sum over ranks may be taken after it as well.
std::vector<ShardingSignature> shard_linear(const Graph& graph, const Node& node);

struct Pointwise {
  std::string_view name;
  std::string_view summary;
  int operands;
  double (*scalar)(std::span<const double>, const Attributes&);
  std::vector<Value> (*gradient)(GradientContext&);
  std::vector<AttributeDef> attributes = {};
  std::vector<Type> (*infer)(const InferContext&) = infer_pointwise;
  bool linear = false;  // f(a + a', b + b') = f(a, b) + f(a', b')
  std::vector<Value> (*decompose)(Graph&, const Node&, std::span<const Value>) = nullptr;
};

OpDef make_pointwise(const Pointwise& op);

}  // namespace lockstep
