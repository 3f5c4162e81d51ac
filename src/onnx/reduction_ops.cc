// Sums, norms of rows, and what chooses along an axis.
#include "onnx/onnx_ops.h"
#include "ops/axis_pieces.h"
#include "ops/reduce_axes.h"

namespace lockstep {
namespace {

struct Reduced {
  std::string operand;
  std::vector<int64_t> axes;
  OnnxValue lies;
};

// Where an image's rows and columns go, it may lie channels first: what is left is in the same order.
Reduced reduced(OnnxLowering& onnx, const Node& node) {
  const std::vector<int> axes = reduced_axes(onnx.graph().type(node.inputs[0]).shape, node.attributes);
  Reduced result{"", {axes.begin(), axes.end()}, {"", onnx.dims(node.outputs[0])}};
  if (onnx.lying(node.inputs[0]).channels_first && axes == std::vector<int>{1, 2}) {
    result.operand = onnx.channels_first(node.inputs[0]);
    result.axes = {2, 3};
    result.lies.channels_first = node.attributes.flag("keep");
  } else {
    result.operand = onnx.full(node.inputs[0]);
  }
  return result;
}

// At operator set 17 these have their axes as an attribute, and ReduceSum as an operand.
void reduce_by(OnnxLowering& onnx, const Node& node, std::string_view type) {
  const Reduced from = reduced(onnx, node);
  onnx.result(node, type, {from.operand},
              {{"axes", from.axes}, {"keepdims", int64_t{node.attributes.flag("keep")}}}, from.lies);
}

void lower_sum(OnnxLowering& onnx, const Node& node) {
  const Reduced from = reduced(onnx, node);
  onnx.result(node, "ReduceSum", {from.operand, onnx.integers(from.axes)},
              {{"keepdims", int64_t{node.attributes.flag("keep")}}}, from.lies);
}

void lower_argmax(OnnxLowering& onnx, const Node& node) {
  onnx.result(node, "ArgMax", {onnx.full(node.inputs[0])},
              {{"axis", int64_t{piece_axis(onnx.graph().type(node.inputs[0]).shape, node.attributes)}},
               {"keepdims", int64_t{0}}});
}

void along_axis(OnnxLowering& onnx, const Node& node, std::string_view type) {
  onnx.result(node, type, {onnx.full(node.inputs[0])},
              {{"axis", int64_t{piece_axis(onnx.graph().type(node.inputs[0]).shape, node.attributes)}}});
}

void lower_layer_norm(OnnxLowering& onnx, const Node& node) {
  onnx.result(node, "LayerNormalization",
              {onnx.full(node.inputs[0]), onnx.full(node.inputs[1]), onnx.full(node.inputs[2])},
              {{"axis", int64_t{-1}}, {"epsilon", static_cast<float>(node.attributes.number("epsilon"))}});
}

constexpr OnnxOp kOps[] = {
    {"sum", lower_sum},
    {"mean", [](OnnxLowering& onnx, const Node& node) { reduce_by(onnx, node, "ReduceMean"); }},
    {"max", [](OnnxLowering& onnx, const Node& node) { reduce_by(onnx, node, "ReduceMax"); }},
    {"argmax", lower_argmax},
    {"softmax", [](OnnxLowering& onnx, const Node& node) { along_axis(onnx, node, "Softmax"); }},
    {"log_softmax", [](OnnxLowering& onnx, const Node& node) { along_axis(onnx, node, "LogSoftmax"); }},
    {"layer_norm", lower_layer_norm, only_first_is_read}};

}  // namespace

std::span<const OnnxOp> onnx_reduction_ops() { return kOps; }

}  // namespace lockstep
