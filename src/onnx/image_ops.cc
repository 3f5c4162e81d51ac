// Ops on images, which ONNX has channels first: what they make stays so for whoever comes next.
#include "onnx/onnx_ops.h"
#include "ops/pool_window.h"
#include "ops/window.h"

namespace lockstep {
namespace {

std::vector<int64_t> strides(const Window& window) { return {window.rows.stride, window.columns.stride}; }

// [top, left, bottom, right].
std::vector<int64_t> pads(const Window& window) {
  return {window.rows.before, window.columns.before, window.rows.after, window.columns.after};
}

OnnxValue channels_first_result(const OnnxLowering& onnx, const Node& node) {
  return {"", onnx.dims(node.outputs[0]), true};
}

void lower_conv2d(OnnxLowering& onnx, const Node& node) {
  const Shape& images = onnx.graph().type(node.inputs[0]).shape;
  const Shape& filter = onnx.graph().type(node.inputs[1]).shape;
  const Window window = make_window({images[1], images[2]}, {filter[1], filter[2]}, node.attributes);
  onnx.result(node, "Conv", {onnx.channels_first(node.inputs[0]), onnx.filter(node.inputs[1])},
              {{"kernel_shape", std::vector<int64_t>{window.rows.kernel, window.columns.kernel}},
               {"strides", strides(window)},
               {"pads", pads(window)},
               {"dilations", std::vector<int64_t>{window.rows.dilation, window.columns.dilation}},
               {"group", node.attributes.integer("groups")}},
              channels_first_result(onnx, node));
}

void lower_pool(OnnxLowering& onnx, const Node& node, std::string_view type,
                std::vector<OnnxAttribute> attributes) {
  const Window window = pool_window(onnx.graph().type(node.inputs[0]).shape, node.attributes);
  attributes.push_back({"kernel_shape", std::vector<int64_t>{window.rows.kernel, window.columns.kernel}});
  attributes.push_back({"strides", strides(window)});
  attributes.push_back({"pads", pads(window)});
  onnx.result(node, type, {onnx.channels_first(node.inputs[0])}, std::move(attributes),
              channels_first_result(onnx, node));
}

void lower_max_pool2d(OnnxLowering& onnx, const Node& node) {
  if (onnx.is_read(node.outputs[1]))
    onnx.refuse(node, "ONNX counts the places of its largest ones otherwise");
  lower_pool(onnx, node, "MaxPool", {});
}

void lower_avg_pool2d(OnnxLowering& onnx, const Node& node) {
  lower_pool(onnx, node, "AveragePool",
             {{"count_include_pad", int64_t{node.attributes.flag("count_include_pad")}}});
}

void lower_batch_norm(OnnxLowering& onnx, const Node& node) {
  const bool image = onnx.graph().type(node.inputs[0]).shape.rank() == 4;
  std::vector<std::string> operands = {image ? onnx.channels_first(node.inputs[0])
                                             : onnx.full(node.inputs[0])};
  for (size_t i = 1; i < node.inputs.size(); ++i) operands.push_back(onnx.full(node.inputs[i]));
  const std::vector<OnnxAttribute> attributes = {
      {"epsilon", static_cast<float>(node.attributes.number("epsilon"))}};
  const OnnxValue lies{"", onnx.dims(node.outputs[0]), image};
  if (!node.attributes.flag("relu"))
    return onnx.result(node, "BatchNormalization", operands, attributes, lies);
  onnx.result(node, "Relu", {onnx.node("BatchNormalization", operands, attributes)}, {}, lies);
}

// By running statistics, of images or of rows; what is left decomposes.
bool is_inference(const Graph& graph, const Node& node) {
  const int rank = graph.type(node.inputs[0]).shape.rank();
  return !node.attributes.flag("training") && (rank == 2 || rank == 4) && only_first_is_read(graph, node);
}

constexpr OnnxOp kOps[] = {{"conv2d", lower_conv2d},
                           {"max_pool2d", lower_max_pool2d},
                           {"avg_pool2d", lower_avg_pool2d},
                           {"batch_norm", lower_batch_norm, is_inference}};

}  // namespace

std::span<const OnnxOp> onnx_image_ops() { return kOps; }

}  // namespace lockstep
