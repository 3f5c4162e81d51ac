// The product that a matmul node asks for, as kernels see it: `batch` products of one shape.
#pragma once
#include "backend/cpu/gemm.h"

namespace lockstep::cpu {

struct MatmulShape {
  GemmShape gemm;
  int64_t batch = 1;
  int64_t stride_b = 0;  // elements between the right operands of neighbouring products; 0: one for all
  bool accumulate = false;

  int64_t stride_a() const { return gemm.m * gemm.k; }
  int64_t stride_c() const { return gemm.m * gemm.n; }
};

MatmulShape matmul_shape(const Graph& graph, const Node& node);

}  // namespace lockstep::cpu
