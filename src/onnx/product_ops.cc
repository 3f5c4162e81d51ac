// matmul: Gemm for two matrices, which takes its operands transposed too, otherwise MatMul.
#include "onnx/onnx_ops.h"

namespace lockstep {
namespace {

std::string swapped(OnnxLowering& onnx, Value value, bool transpose) {
  const std::string whole = onnx.full(value);
  if (!transpose) return whole;
  const int rank = onnx.graph().type(value).shape.rank();
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  std::swap(axes[axes.size() - 2], axes[axes.size() - 1]);
  return onnx.node("Transpose", {whole}, {permutation(axes)});
}

void lower_matmul(OnnxLowering& onnx, const Node& node) {
  const bool ta = node.attributes.flag("transpose_a"), tb = node.attributes.flag("transpose_b");
  const auto rank = [&](size_t operand) { return onnx.graph().type(node.inputs[operand]).shape.rank(); };
  if (rank(0) == 2 && rank(1) == 2) {
    std::vector<std::string> operands;
    for (const Value input : node.inputs) operands.push_back(onnx.full(input));
    return onnx.result(node, "Gemm", operands, {{"transA", int64_t{ta}}, {"transB", int64_t{tb}}});
  }
  const std::vector<std::string> operands = {swapped(onnx, node.inputs[0], ta),
                                             swapped(onnx, node.inputs[1], tb)};
  if (node.inputs.size() == 2) return onnx.result(node, "MatMul", operands);
  onnx.result(node, "Add", {onnx.node("MatMul", operands), onnx.full(node.inputs[2])});
}

// What a 16-bit product keeps as f32 sums has no form there.
bool keeps_type(const Graph& graph, const Node& node) {
  return graph.type(node.inputs[0]).dtype == graph.type(node.outputs[0]).dtype;
}

constexpr OnnxOp kOps[] = {{"matmul", lower_matmul, keeps_type}};

}  // namespace

std::span<const OnnxOp> onnx_product_ops() { return kOps; }

}  // namespace lockstep
