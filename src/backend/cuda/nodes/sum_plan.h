// SumPlan: a whole sum or mean node, as one sweep per group of adjacent axes. The plain kernels and fused_sum
// run it, so that they add in the same order.
#pragma once
#include <vector>

#include "backend/cuda/kernels/column_sums.h"
#include "graph/graph.h"

namespace lockstep::cuda {

class SumPlan {
 public:
  // `node` is a sum or mean of a floating tensor.
  SumPlan(const Graph& graph, const Node& node);
  // The same of values that are stored as another type and are cast to the node's.
  SumPlan(const Graph& graph, const Node& node, DType from);

  int64_t workspace_bytes() const { return 2 * between_ + partials_; }
  void run(cudaStream_t stream, const void* x, void* out, void* workspace) const;

 private:
  DType from_, dtype_;
  float scale_ = 1;
  std::vector<ReducedShape> sweeps_;
  int64_t between_ = 0;   // bytes of a sum that another sweep reads
  int64_t partials_ = 0;  // bytes
};

}  // namespace lockstep::cuda
