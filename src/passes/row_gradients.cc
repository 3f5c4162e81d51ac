#include "passes/row_gradients.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "passes/autodiff.h"

namespace lockstep {
namespace {

Value through_views(const Graph& graph, Value value) {
  while (graph.producer(value) >= 0) {
    const Node& node = graph.nodes()[static_cast<size_t>(graph.producer(value))];
    if (!node.op->traits.view) break;
    value = node.inputs[0];
  }
  return value;
}

const Node* producer_of(const Graph& graph, Value value) {
  const int32_t producer = graph.producer(value);
  return producer < 0 ? nullptr : &graph.nodes()[static_cast<size_t>(producer)];
}

// The embedding_grad node that alone makes the gradient written by an output, or null.
const Node* sole_embedding_gradient(const Graph& graph, const GraphOutput& output) {
  if (!output.target.valid() || graph.role(output.target) != Role::kGrad) return nullptr;
  const Node* made_by = producer_of(graph, output.value);
  // Accumulation into the slot is left to the caller, who merges lists.
  if (made_by != nullptr && made_by->op->name == "add" && made_by->inputs[0] == output.target)
    made_by = producer_of(graph, made_by->inputs[1]);
  if (made_by == nullptr || made_by->op->name != "embedding_grad") return nullptr;
  const Node& node = *made_by;
  if (node.attributes.integer("whole") > 0) return nullptr;  // a leaf of a table
  const int64_t rows = node.attributes.integer("rows");
  if (rows < kRowsPerId * graph.type(node.inputs[1]).shape.numel()) return nullptr;
  return graph.producer(through_views(graph, node.inputs[1])) < 0 ? &node : nullptr;
}

std::string param_of(const Graph& graph, const GraphOutput& output) {
  return graph.name(output.target).substr(grad_name("").size());
}

// The table may be read by nothing but embeddings of those same ids.
bool read_only_by_embedding(const Graph& graph, const std::string& param, Value ids) {
  const Value table = graph.find(param);
  for (const Node& node : graph.nodes())
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != table) continue;
      if (node.op->name != "embedding" || i != 0 || node.inputs[1] != ids) return false;
    }
  return true;
}

bool qualifies(const Graph& graph, const GraphOutput& output) {
  const Node* node = sole_embedding_gradient(graph, output);
  return node != nullptr && read_only_by_embedding(graph, param_of(graph, output), node->inputs[1]);
}

// The gradients that become lists: those of the tables that qualify, if these are at least half of what is
// trained. Below that the optimizer visits most of the parameters anyway, and what everything else takes for
// granted of a gradient (one place in the layout, pieces that workers own) is worth more. A language model's
// table is dense.
std::vector<const GraphOutput*> row_outputs(const Graph& graph) {
  std::vector<const GraphOutput*> found;
  int64_t all = 0;
  int64_t rows = 0;
  for (const GraphOutput& output : graph.outputs()) {
    if (!output.target.valid() || graph.role(output.target) != Role::kGrad) continue;
    const int64_t numel = graph.type(output.target).shape.numel();
    all += numel;
    if (!qualifies(graph, output)) continue;
    rows += numel;
    found.push_back(&output);
  }
  if (2 * rows < all) found.clear();
  return found;
}

}  // namespace

std::string grad_ids_name(std::string_view param) { return grad_name(param) + ".ids"; }
std::string grad_rows_name(std::string_view param) { return grad_name(param) + ".rows"; }

std::vector<RowTable> row_tables(const Graph& differentiated) {
  std::vector<RowTable> tables;
  for (const GraphOutput* output : row_outputs(differentiated)) {
    const Node& node = *sole_embedding_gradient(differentiated, *output);
    tables.push_back({param_of(differentiated, *output),
                      differentiated.name(through_views(differentiated, node.inputs[1])),
                      differentiated.type(output->value).shape,
                      differentiated.type(node.inputs[1]).shape.numel()});
  }
  return tables;
}

Graph make_row_gradients(const Graph& graph, const PassOptions&) {
  std::unordered_map<int32_t, const Node*> replaced;  // grad slot -> its embedding_grad
  for (const GraphOutput* output : row_outputs(graph))
    replaced[output->target.id] = sole_embedding_gradient(graph, *output);
  if (replaced.empty()) return graph;

  Rewriter rewriter(graph, [&](Value input) { return !replaced.contains(input.id); });
  Graph& result = rewriter.graph();
  for (const Node& node : graph.nodes()) {
    const bool dropped = std::any_of(replaced.begin(), replaced.end(),
                                     [&](const auto& entry) { return entry.second == &node; });
    const bool accumulates = node.op->name == "add" && replaced.contains(node.inputs[0].id);
    if (!dropped && !accumulates) rewriter.copy(node);
  }
  for (const GraphOutput& output : graph.outputs()) {
    const auto found = output.target.valid() ? replaced.find(output.target.id) : replaced.end();
    if (found == replaced.end()) {
      if (output.target.valid())
        result.add_update(rewriter.mapped(output.target), rewriter.mapped(output.value));
      else
        result.add_output(rewriter.mapped(output.value));
      continue;
    }
    const Node& node = *found->second;
    const int64_t ids = graph.type(node.inputs[1]).shape.numel();
    const int64_t columns = graph.type(output.value).shape[1];
    const std::string param = param_of(graph, output);
    const Value dy = result.emit("reshape", {rewriter.mapped(node.inputs[0])},
                                 {{"shape", std::vector<int64_t>{ids, columns}}});
    const Value flat_ids =
        result.emit("reshape", {rewriter.mapped(node.inputs[1])}, {{"shape", std::vector<int64_t>{ids}}});
    const std::vector<Value> operands{dy, flat_ids};
    const auto rows = result.emit_all("row_gradient", operands, {{"rows", node.attributes.integer("rows")}});
    result.add_update(result.add_input(grad_ids_name(param), result.type(rows[0]), Role::kGrad), rows[0]);
    result.add_update(result.add_input(grad_rows_name(param), result.type(rows[1]), Role::kGrad), rows[1]);
  }
  return std::move(result);
}

}  // namespace lockstep
