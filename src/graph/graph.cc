#include "graph/graph.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "graph/op_def.h"

namespace lockstep {
namespace {

// A number given as an int where a number is expected (eps=1) is taken as that number.
Attribute converted(const Attribute& value, const Attribute& like) {
  if (std::holds_alternative<double>(like) && std::holds_alternative<int64_t>(value))
    return static_cast<double>(std::get<int64_t>(value));
  if (std::holds_alternative<std::vector<double>>(like) &&
      std::holds_alternative<std::vector<int64_t>>(value)) {
    const auto& ints = std::get<std::vector<int64_t>>(value);
    return std::vector<double>(ints.begin(), ints.end());
  }
  return value;
}

// No extent, count or offset is larger, so that sums of a few of them cannot overflow in a shape rule.
bool in_range(const Attribute& value) {
  const auto fits = [](int64_t x) { return x >= -Shape::kMaxElements && x <= Shape::kMaxElements; };
  if (const auto* integer = std::get_if<int64_t>(&value)) return fits(*integer);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value))
    return std::all_of(list->begin(), list->end(), fits);
  return true;
}

std::string attribute_names(const OpDef& op) {
  std::string out;
  for (const AttributeDef& def : op.attributes) out += (out.empty() ? "" : ", ") + std::string(def.name);
  return out.empty() ? "none" : out;
}

// Completes the given attributes with defaults, in the op's order, and checks names and kinds.
template <typename Where>
Attributes checked_attributes(const OpDef& op, const Attributes& given, const Where& where) {
  for (const auto& [name, value] : given.entries()) {
    const bool known = std::any_of(op.attributes.begin(), op.attributes.end(),
                                   [&name = name](const AttributeDef& def) { return def.name == name; });
    if (!known)
      throw UserError("{}: unknown attribute {}; {} has: {}", where(), name, op.name, attribute_names(op));
  }
  Attributes result;
  for (const AttributeDef& def : op.attributes) {
    const Attribute* found = given.find(def.name);
    if (found == nullptr) {
      if (def.required) throw UserError("{}: attribute {} is required", where(), def.name);
      result.set(def.name, def.default_value);
      continue;
    }
    Attribute value = converted(*found, def.default_value);
    if (value.index() != def.default_value.index())
      throw UserError("{}: attribute {} is {}, a {}; it must be a {}", where(), def.name, to_string(value),
                      kind_name(value), kind_name(def.default_value));
    if (!in_range(value))
      throw UserError("{}: attribute {} is {}; integers must lie within -2^46 and 2^46", where(), def.name,
                      to_string(value));
    result.set(def.name, std::move(value));
  }
  return result;
}

}  // namespace

std::string_view name_of(Role role) {
  constexpr std::array<std::string_view, 6> kNames = {"input", "param", "frozen",
                                                      "grad",  "state", "statistic"};
  return kNames[static_cast<size_t>(role)];
}

Graph::Graph(const Graph& other)
    : ops_(other.ops_),
      name_(other.name_),
      inputs_(other.inputs_),
      nodes_(other.nodes_),
      outputs_(other.outputs_),
      values_(other.values_),
      next_suffix_(other.next_suffix_) {
  reserve(value_count());
  for (size_t id = 0; id < values_.size(); ++id) by_name_.emplace(values_[id].name, static_cast<int32_t>(id));
}

Value Graph::add_input(std::string_view name, Type type, Role role) {
  if (find(name).valid()) throw UserError("graph {}: two inputs are named {}", name_, name);
  const Value value = add_value(type, name, -1, static_cast<int32_t>(inputs_.size()));
  inputs_.push_back({value, role});
  return value;
}

std::vector<Value> Graph::emit_all(std::string_view op, std::span<const Value> inputs,
                                   const Attributes& attributes, std::string_view name) {
  return emit_all(ops_->get(op), inputs, attributes, name);
}

std::vector<Value> Graph::emit_all(const OpDef& op, std::span<const Value> inputs,
                                   const Attributes& attributes, std::string_view name) {
  for (const Value input : inputs)
    LOCKSTEP_CHECK(input.valid() && input.id < value_count(), "operand of {} in graph {}", op.name, name_);
  const auto where = [&] { return describe(*this, op, inputs); };
  const auto count = static_cast<int>(inputs.size());
  if (count < op.min_inputs || count > op.max_inputs) {
    const std::string wanted = op.max_inputs == OpDef::kVariadic ? fmt::format("at least {}", op.min_inputs)
                               : op.min_inputs == op.max_inputs
                                   ? fmt::format("{}", op.min_inputs)
                                   : fmt::format("{} to {}", op.min_inputs, op.max_inputs);
    throw UserError("{}: takes {} operands, got {}", where(), wanted, count);
  }
  Node node{&op, {inputs.begin(), inputs.end()}, {}, checked_attributes(op, attributes, where)};
  std::vector<Type> types;
  try {
    types = op.infer(InferContext(*this, op, inputs, node.attributes));
  } catch (const UserError& error) {
    const std::string text = error.what();
    if (text.starts_with(where())) throw;
    throw UserError("{}: {}", where(), text);
  }
  const auto index = static_cast<int32_t>(nodes_.size());
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string base = name.empty() ? std::string(op.name) : std::string(name);
    node.outputs.push_back(
        add_value(types[i], i == 0 ? base : fmt::format("{}.{}", base, i), index, static_cast<int32_t>(i)));
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

std::span<const Value> Graph::copy_node(const Graph& from, const Node& node, std::vector<Value> inputs) {
  const std::string& name = from.name(node.outputs[0]);
  const bool same = std::ranges::equal(
      inputs, node.inputs, [&](Value mine, Value theirs) { return type(mine) == from.type(theirs); });
  // The op has said what follows from these types when the other node was made.
  if (same) {
    const auto index = static_cast<int32_t>(nodes_.size());
    std::vector<Value> results;
    results.reserve(node.outputs.size());
    for (size_t i = 0; i < node.outputs.size(); ++i)
      results.push_back(i == 0 ? add_value(from.type(node.outputs[0]), name, index, 0)
                               : add_value(from.type(node.outputs[i]), fmt::format("{}.{}", name, i), index,
                                           static_cast<int32_t>(i)));
    nodes_.push_back({node.op, std::move(inputs), std::move(results), node.attributes});
  } else {
    emit_all(*node.op, inputs, node.attributes, name);
  }
  const std::vector<Value>& results = nodes_.back().outputs;
  for (size_t i = 1; i < results.size(); ++i)
    if (const std::string& old = from.name(node.outputs[i]); !find(old).valid()) rename(results[i], old);
  return results;
}

Value Graph::emit(std::string_view op, std::initializer_list<Value> inputs, const Attributes& attributes,
                  std::string_view name) {
  return emit_all(op, std::span<const Value>(inputs.begin(), inputs.size()), attributes, name).at(0);
}

Value Graph::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? Value{} : Value{found->second};
}

Role Graph::role(Value input) const {
  LOCKSTEP_CHECK(producer(input) < 0, "{} is not a graph input", name(input));
  return inputs_[static_cast<size_t>(output_index(input))].role;
}

void Graph::rename(Value value, std::string_view name) {
  ValueInfo& info = values_[static_cast<size_t>(value.id)];
  if (info.name == name) return;
  if (by_name_.contains(name)) throw UserError("graph {}: two values are named {}", name_, name);
  by_name_.erase(info.name);
  info.name = name;
  by_name_[info.name] = value.id;
}

const Graph::ValueInfo& Graph::info(Value value) const {
  LOCKSTEP_CHECK(value.valid() && value.id < value_count(), "value {} of graph {}", value.id, name_);
  return values_[static_cast<size_t>(value.id)];
}

Value Graph::add_value(const Type& type, std::string_view name, int32_t producer, int32_t output_index) {
  const Value value{static_cast<int32_t>(values_.size())};
  std::string& own = values_.emplace_back(ValueInfo{type, std::string(name), producer, output_index}).name;
  if (by_name_.try_emplace(own, value.id).second) return value;
  int32_t& suffix = next_suffix_[own];
  do {
    own = fmt::format("{}_{}", name, ++suffix);
  } while (!by_name_.try_emplace(own, value.id).second);
  return value;
}

std::string describe(const Graph& graph, const OpDef& op, std::span<const Value> inputs) {
  std::string out = std::string(op.name) + "(";
  for (size_t i = 0; i < inputs.size(); ++i)
    out +=
        fmt::format("{}{}: {}", i == 0 ? "" : ", ", graph.name(inputs[i]), to_string(graph.type(inputs[i])));
  return out + ")";
}

std::vector<std::vector<int32_t>> users_of(const Graph& graph) {
  std::vector<std::vector<int32_t>> users(static_cast<size_t>(graph.value_count()));
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    for (const Value input : graph.nodes()[n].inputs)
      users[static_cast<size_t>(input.id)].push_back(static_cast<int32_t>(n));
  return users;
}

}  // namespace lockstep
