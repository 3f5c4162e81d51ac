#include "backend/cuda/nodes/sum_plan.h"

#include <algorithm>

#include "backend/cuda/kernel_def.h"
#include "ops/reduce_axes.h"

namespace lockstep::cuda {

// From the last group of axes to the first, so that every sweep finds its axes adjacent.
SumPlan::SumPlan(const Graph& graph, const Node& node)
    : SumPlan(graph, node, in_type(graph, node, 0).dtype) {}

SumPlan::SumPlan(const Graph& graph, const Node& node, DType from)
    : from_(from), dtype_(in_type(graph, node, 0).dtype) {
  Shape shape = in_type(graph, node, 0).shape;
  const std::vector<int> axes = reduced_axes(shape, node.attributes);
  int64_t terms = 1;
  for (const int axis : axes) terms *= shape[axis];
  if (node.op->name == "mean") scale_ = 1.0f / static_cast<float>(terms);
  const auto reduced = [&](int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); };
  for (int end = shape.rank(); end > 0;) {
    if (!reduced(end - 1) || shape[end - 1] == 1) {
      --end;
      continue;
    }
    int begin = end - 1;
    while (begin > 0 && (reduced(begin - 1) || shape[begin - 1] == 1)) --begin;
    sweeps_.push_back({shape.product(0, begin), shape.product(begin, end), shape.product(end, shape.rank())});
    for (int axis = begin; axis < end; ++axis) shape = shape.with(axis, 1);
    end = begin;
  }
  if (sweeps_.empty()) sweeps_.push_back({shape.numel(), 1, 1});
  for (size_t i = 0; i < sweeps_.size(); ++i) {
    const int64_t results = sweeps_[i].outer * sweeps_[i].inner;
    if (i + 1 < sweeps_.size())
      between_ = std::max(between_, padded(results * static_cast<int64_t>(sizeof(float))));
    partials_ = std::max(partials_, sum_axis_workspace(sweeps_[i]));
  }
}

void SumPlan::run(cudaStream_t stream, const void* x, void* out, void* workspace) const {
  void* const partials = part_of(workspace, 2 * between_);
  const void* from = x;
  for (size_t i = 0; i < sweeps_.size(); ++i) {
    const bool last = i + 1 == sweeps_.size();
    void* const to = last ? out : part_of(workspace, static_cast<int64_t>(i % 2) * between_);
    sum_axis(stream, sweeps_[i], i == 0 ? from_ : DType::kF32, from, last ? scale_ : 1.0f,
             last ? dtype_ : DType::kF32, to, partials);
    from = to;
  }
}

}  // namespace lockstep::cuda
