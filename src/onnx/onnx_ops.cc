#include "onnx/onnx_ops.h"

#include <algorithm>

namespace lockstep {

bool only_first_is_read(const Graph& graph, const Node& node) {
  const auto is_other = [&](Value value) {
    return std::find(node.outputs.begin() + 1, node.outputs.end(), value) != node.outputs.end();
  };
  const auto reads_other = [&](const Node& reader) {
    return std::any_of(reader.inputs.begin(), reader.inputs.end(), is_other);
  };
  return std::none_of(graph.nodes().begin(), graph.nodes().end(), reads_other) &&
         std::none_of(graph.outputs().begin(), graph.outputs().end(),
                      [&](const GraphOutput& output) { return is_other(output.value); });
}

LowerToOnnx find_onnx_op(const Graph& graph, const Node& node) {
  for (const std::span<const OnnxOp> part : {onnx_pointwise_ops(), onnx_shape_ops(), onnx_reduction_ops(),
                                             onnx_product_ops(), onnx_image_ops(), onnx_attention_ops()})
    for (const OnnxOp& op : part)
      if (op.op == node.op->name) return op.takes == nullptr || op.takes(graph, node) ? op.lower : nullptr;
  return nullptr;
}

}  // namespace lockstep
