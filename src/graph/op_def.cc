#include "graph/op_def.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/nearest.h"

namespace lockstep {

std::string_view name_of(Stage stage) {
  constexpr std::array<std::string_view, 4> kNames = {"imported", "differentiated", "fused", "scheduled"};
  return kNames[static_cast<size_t>(stage)];
}

int InferContext::axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank)
    fail("axis {} is outside [{}, {}) of a tensor with {} axes", axis, -rank, rank, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

void InferContext::fail_with(const std::string& what) const {
  throw UserError("{}: {}", describe(graph_, op_, inputs_), what);
}

void InferContext::require_floating(int operand) const {
  if (!is_floating(type(operand).dtype))
    fail("operand {} is {}; it must be f32, bf16 or f16: cast it first", operand,
         name_of(type(operand).dtype));
}

void InferContext::require_same_type(int operand, int as) const {
  if (type(operand) != type(as))
    fail("operand {} is {} but operand {} is {}; they must be equal: broadcast or cast one of them", operand,
         to_string(type(operand)), as, to_string(type(as)));
}

double touched_bytes(const Graph& graph, const Node& node) {
  double bytes = 0;
  for (const Value value : node.inputs) bytes += static_cast<double>(graph.type(value).bytes());
  for (const Value value : node.outputs) bytes += static_cast<double>(graph.type(value).bytes());
  return bytes;
}

Cost cost_of(const Graph& graph, const Node& node) {
  if (node.op->cost != nullptr) return node.op->cost(graph, node);
  if (node.op->traits.view) return {};
  return {0, touched_bytes(graph, node)};
}

OpSet::OpSet(std::vector<OpDef> ops) : ops_(std::move(ops)) {
  for (const OpDef& op : ops_)
    if (!by_name_.emplace(op.name, &op).second) throw InternalError("two ops are named {}", op.name);
}

const OpDef* OpSet::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const OpDef& OpSet::get(std::string_view name) const {
  const OpDef* op = find(name);
  if (op != nullptr) return *op;
  std::vector<std::string_view> names;
  for (const OpDef& known : ops_) names.push_back(known.name);
  throw UserError("unknown op {}; {}", name, suggestion(name, names));
}

}  // namespace lockstep
