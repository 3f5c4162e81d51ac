// iota {shape, axis, dtype}: each element is its own index along one axis. What masks by position are
// compared with.
#include "graph/op_def.h"
#include "ops/indexing.h"

namespace lockstep {

OpDef iota_op() {
  OpDef def{.name = "iota", .summary = "indices along one axis"};
  def.attributes = {{"shape", std::vector<int64_t>{}, "extents of the result", true},
                    {"axis", int64_t{0}, "the axis whose index is written"},
                    {"dtype", DType::kI32, "element type of the result"}};
  def.min_inputs = def.max_inputs = 0;
  def.traits = {.recompute_cheap = true};
  def.infer = [](const InferContext& c) {
    const Shape shape(c.attributes().integers("shape"));
    c.axis(c.attributes().integer("axis"), shape.rank());
    const DType dtype = c.attributes().dtype("dtype");
    if (dtype != DType::kI32 && dtype != DType::kI64 && dtype != DType::kF32)
      c.fail("dtype is {}; indices are i32, i64 or f32: cast the result", name_of(dtype));
    return std::vector<Type>{{dtype, shape}};
  };
  def.gradient_is_zero = true;
  def.reference = [](const ReferenceContext& c) {
    const auto rank = static_cast<int64_t>(c.out().shape().rank());
    const int64_t axis = (c.attributes.integer("axis") + rank) % rank;
    for_each_index(c.out().shape(), [&](std::span<const int64_t> index, int64_t flat) {
      c.out()[flat] = static_cast<double>(index[static_cast<size_t>(axis)]);
    });
  };
  def.sharding = [](const Graph&, const Node&) {
    return std::vector<ShardingSignature>{{{}, {Placement::replicate()}}};
  };
  return def;
}

}  // namespace lockstep
