#include "ops/reduce_axes.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace lockstep {
namespace {

bool contains(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

}  // namespace

std::vector<int> reduced_axes(const Shape& shape, const Attributes& attributes) {
  std::vector<int> axes;
  for (const int64_t axis : attributes.integers("axes"))
    axes.push_back(static_cast<int>(axis < 0 ? axis + shape.rank() : axis));
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(shape.rank()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

std::vector<int> reduced_axes(const InferContext& context) {
  for (const int64_t axis : context.attributes().integers("axes"))
    context.axis(axis, context.shape(0).rank());
  std::vector<int> axes = reduced_axes(context.shape(0), context.attributes());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) context.fail("axes names one axis twice");
  return axes;
}

Shape kept_shape(const Shape& shape, const std::vector<int>& axes) {
  std::vector<int64_t> extents(shape.begin(), shape.end());
  for (const int axis : axes) extents[static_cast<size_t>(axis)] = 1;
  return Shape(extents);
}

Shape dropped_shape(const Shape& shape, const std::vector<int>& axes) {
  std::vector<int64_t> extents;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!contains(axes, axis)) extents.push_back(shape[axis]);
  return Shape(extents);
}

ReductionSplit split_reduction(const Shape& shape, const std::vector<int>& axes) {
  std::vector<int> longer;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(longer),
               [&](int axis) { return shape[axis] != 1; });
  if (longer.empty()) return {shape.numel(), 1, 1};
  const int first = longer.front();
  const int last = longer.back() + 1;
  return {shape.product(0, first), shape.product(first, last), shape.product(last, shape.rank())};
}

std::vector<AttributeDef> reduction_attributes() {
  return {{"axes", std::vector<int64_t>{}, "axes to reduce; empty means all"},
          {"keep", false, "keep reduced axes with extent 1"}};
}

std::vector<Type> infer_reduction(const InferContext& context) {
  const std::vector<int> axes = reduced_axes(context);
  const Shape& shape = context.shape(0);
  const bool keep = context.attributes().flag("keep");
  return {{context.type(0).dtype, keep ? kept_shape(shape, axes) : dropped_shape(shape, axes)}};
}

std::vector<ShardingSignature> shard_reduction(const Graph& graph, const Node& node, bool partial) {
  const Shape& shape = graph.type(node.inputs[0]).shape;
  const std::vector<int> axes = reduced_axes(shape, node.attributes);
  const bool keep = node.attributes.flag("keep");
  std::vector<ShardingSignature> signatures{{{Placement::replicate()}, {Placement::replicate()}}};
  if (partial) signatures.push_back({{Placement::partial()}, {Placement::partial()}});
  int dropped = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (contains(axes, axis)) {
      if (partial) signatures.push_back({{Placement::split(axis)}, {Placement::partial()}});
      if (!keep) ++dropped;
    } else {
      signatures.push_back({{Placement::split(axis)}, {Placement::split(axis - dropped)}});
    }
  }
  return signatures;
}

}  // namespace lockstep
