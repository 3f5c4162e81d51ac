// The CUDA source of a pointwise region, from the graph of its body (ops/fused.h).
//
// The formulas are the text of kernels/pointwise_functions.cuh, and each value is rounded to its type where
// the op alone would store it: a region has the bits of its ops run one by one. Extents and steps are
// arguments of the kernel, so that one source serves every shape of a region.
#pragma once
#include <string>
#include <vector>

#include "backend/cuda/region_layout.h"
#include "graph/graph.h"

namespace lockstep::cuda {

struct FusedSource {
  std::string text;
  int width = 1;            // elements per thread
  bool wide_index = false;  // 64-bit positions
};

// Why a node of a body cannot be part of a source, "" where it can.
std::string refuse_in_region(const Graph& body, const Node& node);

// `stored` are the values that the kernel writes, one result each.
FusedSource fused_source(const Graph& body, const std::vector<Value>& stored, const RegionLayout& layout,
                         int width);

// The width that suits the types, and 1 where the layout allows no other.
int region_width(const Graph& body, const std::vector<Value>& stored, const RegionLayout& layout);

// kernels/pointwise_functions.cuh as text.
extern const char* const kPointwiseFunctions;

}  // namespace lockstep::cuda
