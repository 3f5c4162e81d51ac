// Summation: a whole sum or mean node over terms from anywhere. Both the plain kernels and fused_sum run
// this, so they add in the same order and round at the same places.
#pragma once
#include <vector>

#include "backend/cpu/sums.h"

namespace lockstep::cpu {

class Summation {
 public:
  // `node` is a sum or mean of a floating tensor.
  Summation(const Graph& graph, const Node& node, const CpuContext& context);

  int64_t workspace_floats() const { return 2 * results_ + partials_; }
  // Asks for every term exactly once. The result is written while terms are still being asked for.
  void run(const TermSource& terms, void* out, float* workspace) const;

 private:
  void finish(float* sums, void* out) const;

  CpuContext context_;
  Type type_;
  std::vector<SumShape> passes_;
  bool mean_;
  float divisor_ = 1;
  int64_t results_ = 0;
  int64_t partials_ = 0;
};

}  // namespace lockstep::cpu
