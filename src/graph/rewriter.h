// Rewriter: builds a new graph from an old one, node by node, remembering where each old value went.
//
// A pass walks old.nodes(); for each it either calls copy(), or emits something else into graph() and maps
// the old results to the new values. finish() carries the outputs over.
#pragma once
#include <functional>
#include <vector>

#include "graph/graph.h"

namespace lockstep {

class Rewriter {
 public:
  // Starts with all inputs of the old graph.
  explicit Rewriter(const Graph& old);
  // Starts with those inputs for which keep(input) holds; the others may not be used.
  Rewriter(const Graph& old, const std::function<bool(Value)>& keep);

  Graph& graph() { return graph_; }
  Value mapped(Value old_value) const;
  bool has(Value old_value) const { return map_[static_cast<size_t>(old_value.id)].valid(); }
  std::vector<Value> mapped(std::span<const Value> old_values) const;
  void map(Value old_value, Value new_value) { map_[static_cast<size_t>(old_value.id)] = new_value; }

  // Copies a node unchanged (names kept) and maps its results. These are there until the next node is made.
  std::span<const Value> copy(const Node& node) { return copy(node, mapped(node.inputs)); }
  // The same with other operands, values of the new graph.
  std::span<const Value> copy(const Node& node, std::vector<Value> inputs);
  // Adds the old graph's outputs, mapped, and hands the new graph over.
  Graph finish() &&;

 private:
  const Graph& old_;
  Graph graph_;
  std::vector<Value> map_;
};

}  // namespace lockstep
