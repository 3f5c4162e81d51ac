#include "onnx/export_graph.h"

#include "base/error.h"
#include "graph/rewriter.h"
#include "onnx/forward.h"
#include "onnx/onnx_ops.h"
#include "passes/dce.h"

namespace lockstep {
namespace {

// Neither is 1, which would look like an axis to broadcast along.
constexpr int64_t kBatch = 2, kOtherBatch = 3;

OnnxDim open_extent(int64_t extent, int64_t batch, int64_t other, int64_t other_batch,
                    const std::string& name) {
  if (extent == other) return {extent, false};
  if (extent % batch != 0 || extent / batch * other_batch != other)
    throw UserError(
        "cannot export {} to ONNX: an extent is {} with {} samples and {} with {}, which no ONNX model can "
        "say",
        name, extent, batch, other, other_batch);
  return {extent / batch, true};
}

std::vector<std::string> output_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphOutput& output : graph.outputs()) names.push_back(graph.name(output.value));
  return names;
}

}  // namespace

Graph onnx_ops_only(Graph graph) {
  const std::vector<std::string> names = output_names(graph);
  graph = remove_dead_nodes(graph);
  for (bool complete = false; !complete;) {
    complete = true;
    Rewriter rewriter(graph);
    for (const Node& node : graph.nodes()) {
      // What has neither is refused by name when it is lowered.
      if (find_onnx_op(graph, node) != nullptr || node.op->decompose == nullptr) {
        rewriter.copy(node);
        continue;
      }
      complete = false;
      const std::vector<Value> inputs = rewriter.mapped(node.inputs);
      const std::vector<Value> results = node.op->decompose(rewriter.graph(), node, inputs);
      for (size_t i = 0; i < results.size(); ++i) rewriter.map(node.outputs[i], results[i]);
    }
    graph = remove_dead_nodes(std::move(rewriter).finish());
  }
  // What an output was decomposed into has a name of its own.
  for (size_t i = 0; i < names.size(); ++i)
    if (!graph.find(names[i]).valid()) graph.rename(graph.outputs()[i].value, names[i]);
  return graph;
}

std::vector<OnnxDims> open_extents(const Graph& graph, int64_t batch, const Graph& other,
                                   int64_t other_batch) {
  LOCKSTEP_CHECK(graph.value_count() == other.value_count(),
                 "{} has {} values with {} samples and {} with {}", graph.name(), graph.value_count(), batch,
                 other.value_count(), other_batch);
  std::vector<OnnxDims> all;
  for (int32_t id = 0; id < graph.value_count(); ++id) {
    const Value value{id};
    const Shape &a = graph.type(value).shape, &b = other.type(value).shape;
    LOCKSTEP_CHECK(a.rank() == b.rank() && graph.name(value) == other.name(value), "{} is not {}",
                   graph.name(value), other.name(value));
    OnnxDims dims;
    for (int axis = 0; axis < a.rank(); ++axis)
      dims.push_back(open_extent(a[axis], batch, b[axis], other_batch, graph.name(value)));
    all.push_back(std::move(dims));
  }
  return all;
}

OnnxModel onnx_of(const BuildEvaluation& build) {
  const Graph graph = onnx_ops_only(forward_graph(build(kBatch)));
  const Graph other = onnx_ops_only(forward_graph(build(kOtherBatch)));
  return OnnxLowering(graph, open_extents(graph, kBatch, other, kOtherBatch)).run();
}

}  // namespace lockstep
