// The ops that have a form in ONNX, each as a function that adds its nodes: the table behind OnnxLowering. An
// op that is not here is exported as what it decomposes into.
#pragma once
#include <span>
#include <string_view>

#include "onnx/lowering.h"

namespace lockstep {

using LowerToOnnx = void (*)(OnnxLowering& onnx, const Node& node);

struct OnnxOp {
  std::string_view op;
  LowerToOnnx lower;
  // Whether this node has that form; null: all have.
  bool (*takes)(const Graph& graph, const Node& node) = nullptr;
};

// The parts of the table.
std::span<const OnnxOp> onnx_pointwise_ops();
std::span<const OnnxOp> onnx_shape_ops();
std::span<const OnnxOp> onnx_reduction_ops();
std::span<const OnnxOp> onnx_product_ops();
std::span<const OnnxOp> onnx_image_ops();
std::span<const OnnxOp> onnx_attention_ops();

// Whether nobody reads the results behind the first, such as the mean of a norm: then the op's form there,
// which does not give them, will do.
bool only_first_is_read(const Graph& graph, const Node& node);

// Null where the node has no form of its own.
LowerToOnnx find_onnx_op(const Graph& graph, const Node& node);

}  // namespace lockstep
