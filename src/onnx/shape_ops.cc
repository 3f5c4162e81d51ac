// Ops that move elements without arithmetic, and constants.
#include <cstring>

#include "onnx/onnx_ops.h"
#include "ops/axis_pieces.h"

namespace lockstep {
namespace {

void lower_constant(OnnxLowering& onnx, const Node& node) {
  onnx.is(node.outputs[0],
          {onnx.scalar(node.attributes.number("value"), onnx.type(node.outputs[0])), OnnxDims{}});
}

// Written along its own axis alone; the others are broadcast.
void lower_iota(OnnxLowering& onnx, const Node& node) {
  const OnnxDims& dims = onnx.dims(node.outputs[0]);
  const int axis = piece_axis(onnx.graph().type(node.outputs[0]).shape, node.attributes);
  const OnnxDim extent = dims[static_cast<size_t>(axis)];
  if (extent.batch) onnx.refuse(node, "it counts along the batch, whose size is open");
  const OnnxType type = onnx.type(node.outputs[0]);
  std::string bytes;
  for (int64_t i = 0; i < extent.extent; ++i) {
    const auto number = static_cast<float>(i);
    const bool whole = type == OnnxType::kInt64;
    bytes.append(whole ? reinterpret_cast<const char*>(&i) : reinterpret_cast<const char*>(&number),
                 whole ? sizeof i : sizeof number);
  }
  OnnxDims lies(dims.size() - static_cast<size_t>(axis));
  lies[0] = extent;
  std::vector<int64_t> extents(lies.size(), 1);
  extents[0] = extent.extent;
  onnx.is(node.outputs[0], {onnx.constant(type, extents, std::move(bytes)), lies});
}

void lower_reshape(OnnxLowering& onnx, const Node& node) {
  const OnnxDims& dims = onnx.dims(node.outputs[0]);
  onnx.result(node, "Reshape", {onnx.full(node.inputs[0]), onnx.target(node, dims)});
}

void lower_broadcast(OnnxLowering& onnx, const Node& node) {
  OnnxValue lies = onnx.lying(node.inputs[0]);
  if (lies.channels_first) lies = {onnx.full(node.inputs[0]), onnx.dims(node.inputs[0])};
  onnx.is(node.outputs[0], lies);
}

void lower_transpose(OnnxLowering& onnx, const Node& node) {
  onnx.result(node, "Transpose", {onnx.full(node.inputs[0])},
              {permutation(node.attributes.integers("permutation"))});
}

void lower_slice(OnnxLowering& onnx, const Node& node) {
  const int axis = piece_axis(onnx.graph().type(node.inputs[0]).shape, node.attributes);
  if (onnx.dims(node.inputs[0])[static_cast<size_t>(axis)].batch)
    onnx.refuse(node, "it cuts the batch, whose size is open");
  onnx.result(node, "Slice",
              {onnx.full(node.inputs[0]), onnx.integers({node.attributes.integer("begin")}),
               onnx.integers({node.attributes.integer("end")}), onnx.integers({axis})});
}

void lower_concat(OnnxLowering& onnx, const Node& node) {
  std::vector<std::string> pieces;
  for (const Value input : node.inputs) pieces.push_back(onnx.full(input));
  const int axis = piece_axis(onnx.graph().type(node.inputs[0]).shape, node.attributes);
  onnx.result(node, "Concat", pieces, {{"axis", int64_t{axis}}});
}

void lower_embedding(OnnxLowering& onnx, const Node& node) {
  onnx.result(node, "Gather", {onnx.full(node.inputs[0]), onnx.full(node.inputs[1])}, {{"axis", int64_t{0}}});
}

void lower_gather(OnnxLowering& onnx, const Node& node) {
  onnx.result(node, "Gather", {onnx.full(node.inputs[0]), onnx.full(node.inputs[1])},
              {{"axis", node.attributes.integer("axis")}});
}

// The elements of the flattened matrices by their indices: one node, where pieces would take one per row.
void lower_triangle(OnnxLowering& onnx, const Node& node) {
  const OnnxDims& square = onnx.dims(node.inputs[0]);
  const int64_t n = square.back().extent;
  OnnxDims rows(square.begin(), square.end() - 1);
  rows.back() = {n * n, false};
  std::vector<int64_t> below;
  for (int64_t row = 1; row < n; ++row)
    for (int64_t column = 0; column < row; ++column) below.push_back(row * n + column);
  const std::string flat = onnx.node("Reshape", {onnx.full(node.inputs[0]), onnx.target(node, rows)});
  onnx.result(node, "Gather", {flat, onnx.integers(below)},
              {{"axis", static_cast<int64_t>(rows.size()) - 1}});
}

constexpr OnnxOp kOps[] = {{"constant", lower_constant},   {"iota", lower_iota},
                           {"reshape", lower_reshape},     {"broadcast", lower_broadcast},
                           {"transpose", lower_transpose}, {"slice", lower_slice},
                           {"concat", lower_concat},       {"embedding", lower_embedding},
                           {"gather", lower_gather},       {"lower_triangle", lower_triangle}};

}  // namespace

std::span<const OnnxOp> onnx_shape_ops() { return kOps; }

}  // namespace lockstep
