#include <algorithm>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/text.h"

namespace lockstep {
namespace {

std::string names(const Graph& graph, const std::vector<Value>& values) {
  std::string out;
  for (const Value value : values) out += (out.empty() ? "" : ", ") + graph.name(value);
  return out;
}

}  // namespace

std::string attribute_text(const OpDef& op, const Attributes& attributes) {
  std::string out;
  for (const AttributeDef& def : op.attributes) {
    const std::string text = to_string(*attributes.find(def.name));
    // Compared as text: -0.0 equals a default of 0.0 but is another number.
    if (!def.required && text == to_string(def.default_value)) continue;
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", def.name, text);
  }
  return out.empty() ? "" : " {" + out + "}";
}

std::string to_text(const Graph& graph, const Node& node) {
  return fmt::format("{} = {}({}){}", names(graph, node.outputs), node.op->name, names(graph, node.inputs),
                     attribute_text(*node.op, node.attributes));
}

std::string to_text(const Graph& graph) {
  std::string out = fmt::format("graph {}(", graph.name());
  bool first = true;
  for (const GraphInput& input : graph.inputs()) {
    out += fmt::format("{}{}: {}", first ? "" : ", ", graph.name(input.value),
                       to_string(graph.type(input.value)));
    if (input.role != Role::kInput) out += fmt::format(" @{}", name_of(input.role));
    first = false;
  }
  out += ") {\n";
  for (const Node& node : graph.nodes()) out += "  " + to_text(graph, node) + "\n";
  out += "  return";
  first = true;
  for (const GraphOutput& output : graph.outputs()) {
    out += first ? " " : ", ";
    if (output.target.valid()) out += graph.name(output.target) + " <- ";
    out += graph.name(output.value);
    first = false;
  }
  return out + "\n}\n";
}

}  // namespace lockstep
