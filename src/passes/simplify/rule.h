// What a simplification rule is: a function that is shown a node before it is made, with operands that are
// simple already, and returns an equal value, or none when it does not apply.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/op_def.h"

namespace lockstep::simplification {

class Simplifier;

// A node that is about to be made; its attributes are complete.
struct Candidate {
  const OpDef& op;
  std::span<const Value> inputs;
  const Attributes& attributes;
  const Type& type;  // of the result
  Value in(int operand) const { return inputs[static_cast<size_t>(operand)]; }
};

struct Rule {
  std::string_view op;
  Value (*apply)(Simplifier&, const Candidate&);
};

std::span<const Rule> constant_rules();
std::span<const Rule> arithmetic_rules();
std::span<const Rule> shape_rules();

// Makes nodes in a graph, each as simple as the rules allow.
class Simplifier {
 public:
  explicit Simplifier(Graph& graph);

  const Graph& graph() const { return graph_; }
  const Type& type(Value value) const { return graph_.type(value); }
  bool has_rules(const OpDef& op) const { return rules_.contains(&op); }
  // Attributes must be complete. A node that no rule applies to is made under `name`.
  std::vector<Value> emit_all(const OpDef& op, std::span<const Value> inputs, const Attributes& attributes,
                              std::string_view name);
  // For rules: what is emitted takes the name of the node that is being replaced.
  Value emit(std::string_view op, std::initializer_list<Value> inputs, const Attributes& attributes = {});
  Value constant(double value, const Type& type);
  // A constant that an emitted node reads; it does not take the name.
  Value operand_constant(double value, const Type& type);
  Value reshape(Value a, const Shape& shape);

  // The node that makes a value, if it is made by that op.
  const Node* made_by(Value value, std::string_view op) const;
  // The number a constant is filled with, as its element type holds it.
  std::optional<double> constant_value(Value value) const;

 private:
  Graph& graph_;
  std::unordered_map<const OpDef*, std::vector<Rule>> rules_;
  std::string_view name_;
};

std::vector<int64_t> extents_of(const Shape& shape);

}  // namespace lockstep::simplification
