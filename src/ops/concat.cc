// concat(a, b, ...) {axis}: tensors one after another along an axis; all other extents are equal.
#include "ops/axis_pieces.h"
#include "ops/builder.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  const Shape& first = c.shape(0);
  const int axis = c.axis(c.attributes().integer("axis"), first.rank());
  int64_t extent = 0;
  for (int operand = 0; operand < c.count(); ++operand) {
    const Shape& shape = c.shape(operand);
    if (c.type(operand).dtype != c.type(0).dtype)
      c.fail("operand {} is {}, operand 0 is {}; cast one of them", operand, name_of(c.type(operand).dtype),
             name_of(c.type(0).dtype));
    if (shape.rank() != first.rank() || shape.with(axis, 0) != first.with(axis, 0))
      c.fail("operand {} is {}, operand 0 is {}; they may differ along axis {} only", operand,
             to_string(shape), to_string(first), axis);
    extent += shape[axis];
  }
  return {{c.type(0).dtype, first.with(axis, extent)}};
}

std::vector<Value> gradient(GradientContext& c) {
  Builder b(c.graph);
  const int axis = piece_axis(c.type(c.in(0)).shape, c.attributes());
  std::vector<Value> grads;
  int64_t begin = 0;
  for (size_t i = 0; i < c.node.inputs.size(); ++i) {
    const int64_t end = begin + c.type(c.node.inputs[i]).shape[axis];
    grads.push_back(c.needed[i] ? b.slice(c.grad(), axis, begin, end) : Value{});
    begin = end;
  }
  return grads;
}

}  // namespace

OpDef concat_op() {
  OpDef def{.name = "concat", .summary = "tensors one after another along an axis"};
  def.attributes = {axis_attribute()};
  def.max_inputs = OpDef::kVariadic;
  def.traits = {.recompute_cheap = true};
  def.infer = infer;
  def.gradient = gradient;
  def.reference = [](const ReferenceContext& c) {
    const int axis = piece_axis(c.out().shape(), c.attributes);
    int64_t begin = 0;
    for (const RefTensor* input : c.inputs) {
      copy_piece(*input, 0, c.out(), begin, axis, input->shape()[axis]);
      begin += input->shape()[axis];
    }
  };
  def.sharding = shard_pieces;
  return def;
}

}  // namespace lockstep
