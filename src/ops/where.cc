// where(condition, a, b): a where the condition holds, b elsewhere. The condition is bool and has no
// gradient.
#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  if (c.type(0).dtype != DType::kBool)
    c.fail("operand 0 is {}; the condition must be bool: use compare, or cast it", to_string(c.type(0)));
  c.require_same_type(2, 1);
  if (c.shape(0) != c.shape(1))
    c.fail("the condition is {}, the choices are {}; the shapes must be equal: broadcast one of them",
           to_string(c.shape(0)), to_string(c.shape(1)));
  return {c.type(1)};
}

std::vector<Value> gradient(GradientContext& c) {
  Builder b(c.graph);
  const Value zero = b.constant_like(0.0, c.grad());
  return {Value{}, c.needed[1] ? b.where(c.in(0), c.grad(), zero) : Value{},
          c.needed[2] ? b.where(c.in(0), zero, c.grad()) : Value{}};
}

}  // namespace

OpDef where_op() {
  OpDef def = make_pointwise({
      .name = "where",
      .summary = "a where the condition holds, b elsewhere",
      .operands = 3,
      .scalar = [](std::span<const double> x, const Attributes&) { return x[0] != 0.0 ? x[1] : x[2]; },
      .gradient = gradient,
      .infer = infer,
  });
  def.inplace = {{1, 0}, {2, 0}};  // the condition's elements may be narrower than the result's
  return def;
}

}  // namespace lockstep
