#include "backend/cpu/matmul_shape.h"

namespace lockstep::cpu {

MatmulShape matmul_shape(const Graph& graph, const Node& node) {
  const Shape& a = graph.type(node.inputs[0]).shape;
  const Shape& b = graph.type(node.inputs[1]).shape;
  const Shape& out = graph.type(node.outputs[0]).shape;
  MatmulShape shape;
  GemmShape& gemm = shape.gemm;
  gemm.transpose_a = node.attributes.flag("transpose_a");
  gemm.transpose_b = node.attributes.flag("transpose_b");
  gemm.m = out[-2];
  gemm.n = out[-1];
  gemm.k = gemm.transpose_a ? a[-2] : a[-1];
  shape.batch = a.product(0, a.rank() - 2);
  if (b.rank() == 2 && !gemm.transpose_a) {  // the batch axes of a are rows
    gemm.m *= shape.batch;
    shape.batch = 1;
  }
  shape.stride_b = b.rank() == 2 ? 0 : gemm.k * gemm.n;
  shape.accumulate = node.inputs.size() == 3;
  return shape;
}

}  // namespace lockstep::cpu
