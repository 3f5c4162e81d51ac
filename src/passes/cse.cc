#include "passes/cse.h"

#include <algorithm>
#include <unordered_map>

#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "passes/recompute.h"

namespace lockstep {
namespace {

template <typename T>
void append_bytes(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

struct AppendAttribute {
  std::string& key;

  template <typename T>
  void operator()(const T& value) const {
    append_bytes(key, value);
  }
  void operator()(const std::string& value) const {
    append_bytes(key, value.size());
    key += value;
  }
  template <typename T>
  void operator()(const std::vector<T>& values) const {
    append_bytes(key, values.size());
    for (const T value : values) append_bytes(key, value);
  }
};

// Every attribute takes part, at its default or not. All nodes of an op have the same ones, in one order.
std::string key_of(const Node& node, std::vector<Value> inputs) {
  if (node.op->name == "add" || node.op->name == "mul")
    std::sort(inputs.begin(), inputs.end(), [](Value a, Value b) { return a.id < b.id; });
  std::string key;
  append_bytes(key, node.op);
  append_bytes(key, inputs.size());
  for (const Value input : inputs) append_bytes(key, input.id);
  for (const auto& entry : node.attributes.entries()) std::visit(AppendAttribute{key}, entry.second);
  return key;
}

}  // namespace

Graph merge_common_subexpressions(const Graph& graph) {
  Rewriter rewriter(graph);
  std::unordered_map<std::string, std::vector<Value>> seen;
  for (const Node& node : graph.nodes()) {
    if (node.op->traits.collective || is_recomputed(graph, node)) {
      rewriter.copy(node);
      continue;
    }
    const auto [found, fresh] = seen.try_emplace(key_of(node, rewriter.mapped(node.inputs)));
    if (fresh) {
      const std::span<const Value> copied = rewriter.copy(node);
      found->second.assign(copied.begin(), copied.end());
      continue;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) rewriter.map(node.outputs[i], found->second[i]);
  }
  return std::move(rewriter).finish();
}

}  // namespace lockstep
