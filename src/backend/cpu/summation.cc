#include "backend/cpu/summation.h"

#include <algorithm>

#include "backend/cpu/storage.h"
#include "ops/reduce_axes.h"

namespace lockstep::cpu {

Summation::Summation(const Graph& graph, const Node& node, const CpuContext& context)
    : context_(context), type_(graph.type(node.outputs[0])), mean_(node.op->name == "mean") {
  const Shape& shape = graph.type(node.inputs[0]).shape;
  passes_ = sum_passes(shape, reduced_axes(shape, node.attributes));
  const int64_t summands = type_.shape.numel() > 0 ? shape.numel() / type_.shape.numel() : 0;
  if (mean_ && summands > 0) divisor_ = static_cast<float>(summands);
  for (const SumShape& pass : passes_) {
    results_ = std::max(results_, pass.outer * pass.inner);
    partials_ = std::max(partials_, sum_workspace(pass));
  }
}

// The workspace holds the results of alternate passes, then partial sums.
void Summation::run(const TermSource& terms, void* out, float* workspace) const {
  float* results[2] = {workspace, workspace + results_};
  float* partials = workspace + 2 * results_;
  float* from = nullptr;
  for (size_t i = 0; i < passes_.size(); ++i) {
    const bool last = i + 1 == passes_.size();
    float* to = last && type_.dtype == DType::kF32 ? static_cast<float*>(out) : results[i % 2];
    if (i == 0)
      sum_terms(context_, passes_[i], terms, to, partials);
    else
      sum_terms(context_, passes_[i], FloatTerms(from), to, partials);
    from = to;
  }
  finish(from, out);
}

void Summation::finish(float* sums, void* out) const {
  if (!mean_ && type_.dtype == DType::kF32) return;
  for_rows(context_, type_.shape.numel(), kTaskElements, [&](int64_t begin, int64_t end) {
    const auto divide = context_.simd.pointwise.tile_scalar[static_cast<int>(Scalar::div)];
    if (mean_) divide(sums + begin, sums + begin, divisor_, end - begin);
    write_floats(context_.simd, type_.dtype, out, begin, end - begin, sums + begin);
  });
}

}  // namespace lockstep::cpu
