#include "onnx/forward.h"

#include <algorithm>

#include "base/error.h"
#include "graph/rewriter.h"
#include "ops/builder.h"
#include "passes/dce.h"

namespace lockstep {
namespace {

constexpr std::string_view kCategory = "category.", kIds = "ids";

// As the tools that make tokens call them.
std::string outside_name(const std::string& name) {
  if (name == "tokens") return "input_ids";
  if (name == "segments") return "token_type_ids";
  if (name == "keys_visible") return "attention_mask";
  return name;
}

bool is_argmax(const Graph& graph, Value value) {
  const int32_t producer = graph.producer(value);
  return producer >= 0 && graph.nodes()[static_cast<size_t>(producer)].op->name == "argmax";
}

// What the loss compares with the labels, before it is made into what the model answers.
Graph scores_only(const Model& model) {
  LOCKSTEP_CHECK(model.graph.outputs().size() == 3, "{} was not built to evaluate", model.graph.name());
  Graph graph = model.graph;
  const Value answer = graph.outputs()[2].value;
  const bool chooses = is_argmax(graph, answer);
  const Value scores =
      chooses ? graph.nodes()[static_cast<size_t>(graph.producer(answer))].inputs[0] : answer;
  graph.clear_outputs();
  graph.add_output(scores);
  return remove_dead_nodes(graph);
}

std::vector<bool> read_values(const Graph& graph) {
  std::vector<bool> read(static_cast<size_t>(graph.value_count()), false);
  for (const Node& node : graph.nodes())
    for (const Value input : node.inputs) read[static_cast<size_t>(input.id)] = true;
  return read;
}

// The graph's own inputs, made of those that the caller gives.
void map_inputs(const Graph& old, Rewriter& rewriter) {
  const std::vector<bool> read = read_values(old);
  std::vector<Value> categories;
  for (const GraphInput& input : old.inputs()) {
    if (input.role != Role::kInput || !read[static_cast<size_t>(input.value.id)]) continue;
    const std::string& name = old.name(input.value);
    if (name.starts_with(kCategory))
      categories.push_back(input.value);
    else
      rewriter.map(input.value, rewriter.graph().add_input(outside_name(name), old.type(input.value)));
  }
  if (categories.empty()) return;
  const Type column = old.type(categories[0]);
  const auto tables = static_cast<int64_t>(categories.size());
  const Value ids = rewriter.graph().add_input(kIds, {column.dtype, {column.shape[0], tables}});
  Builder b(rewriter.graph());
  for (int64_t i = 0; i < tables; ++i)
    rewriter.map(categories[static_cast<size_t>(i)], b.reshape(b.slice(ids, 1, i, i + 1), column.shape));
}

void add_named(Graph& graph, Value value, std::string_view name) {
  graph.rename(value, name);
  graph.add_output(value);
}

void add_answers(Graph& graph, Value scores, const Model& model) {
  Builder b(graph);
  if (model.task == Task::kNextToken) {
    const int64_t classes = b.shape(scores)[-1];
    const int64_t positions = b.shape(scores)[0] / model.samples;
    return add_named(graph, b.reshape(scores, {model.samples, positions, classes}), "logits");
  }
  if (model.task == Task::kClassify) {
    add_named(graph, scores, "logits");
    add_named(graph, b.op("softmax", {scores}), "probabilities");
    return add_named(graph, b.op("argmax", {scores}), "classes");
  }
  if (model.task == Task::kRegress)
    return add_named(graph, b.shift(b.scale(scores, model.target.deviation), model.target.mean), "values");
  add_named(graph, scores, "logits");
  add_named(graph, b.op("sigmoid", {scores}), "probability");
}

}  // namespace

Graph forward_graph(const Model& model) {
  const Graph old = scores_only(model);
  Rewriter rewriter(old, [&](Value input) { return old.role(input) != Role::kInput; });
  map_inputs(old, rewriter);
  for (const Node& node : old.nodes()) rewriter.copy(node);
  const Value scores = rewriter.mapped(old.outputs()[0].value);
  Graph graph = std::move(rewriter.graph());
  add_answers(graph, scores, model);
  return graph;
}

int64_t forward_input_bound(const Model& model, std::string_view name) {
  for (const auto& [input, bound] : model.integer_inputs)
    if (outside_name(input) == name || (name == kIds && input.starts_with(kCategory))) return bound;
  return 2;
}

}  // namespace lockstep
