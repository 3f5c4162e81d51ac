// transpose(a) {permutation}: reorders axes; axis i of the result is axis permutation[i] of the operand.
#include <algorithm>

#include "ops/builder.h"
#include "ops/indexing.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  const std::vector<int64_t>& permutation = c.attributes().integers("permutation");
  const int rank = c.shape(0).rank();
  std::vector<int64_t> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted.size() != static_cast<size_t>(rank) || sorted[i] != static_cast<int64_t>(i))
      c.fail("permutation [{}] must name each of the axes 0 to {} once", fmt::join(permutation, ","),
             rank - 1);
  if (sorted.size() != static_cast<size_t>(rank))
    c.fail("permutation is empty; it must name all {} axes", rank);
  std::vector<int64_t> extents;
  for (const int64_t axis : permutation) extents.push_back(c.shape(0)[static_cast<int>(axis)]);
  return {{c.type(0).dtype, Shape(extents)}};
}

std::vector<Value> gradient(GradientContext& c) {
  const std::vector<int64_t>& permutation = c.attributes().integers("permutation");
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return {Builder(c.graph).transpose(c.grad(), inverse)};
}

void reference(const ReferenceContext& c) {
  const std::vector<int64_t>& permutation = c.attributes.integers("permutation");
  const Strides own = c.in(0).shape().strides();
  Strides strides{};
  for (size_t i = 0; i < permutation.size(); ++i) strides[i] = own[static_cast<size_t>(permutation[i])];
  for_each_index(c.out().shape(), [&](std::span<const int64_t> index, int64_t flat) {
    c.out()[flat] = c.in(0)[offset_of(index, strides)];
  });
}

std::vector<ShardingSignature> sharding(const Graph&, const Node& node) {
  std::vector<ShardingSignature> signatures{{{Placement::replicate()}, {Placement::replicate()}},
                                            {{Placement::partial()}, {Placement::partial()}}};
  int to = 0;
  for (const int64_t from : node.attributes.integers("permutation"))
    signatures.push_back({{Placement::split(static_cast<int>(from))}, {Placement::split(to++)}});
  return signatures;
}

}  // namespace

OpDef transpose_op() {
  OpDef def{.name = "transpose", .summary = "reorders axes"};
  def.attributes = {
      {"permutation", std::vector<int64_t>{}, "for each axis of the result, the operand's axis", true}};
  def.traits = {.recompute_cheap = true};
  def.infer = infer;
  def.gradient = gradient;
  def.reference = reference;
  def.sharding = sharding;
  return def;
}

}  // namespace lockstep
