// pow(a, b): a to the power of b; NaN for a negative base with a fractional exponent. The gradient is finite
// where the power is: with respect to a it is 0 where b is 0, with respect to b it is 0 where a is 0.
#include <cmath>

#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {
namespace {

Value base_gradient(GradientContext& c) {
  Builder b(c.graph);
  const Value exponent = c.in(1);
  const Value zero = b.constant_like(0.0, exponent);
  const Value lowered = b.op("pow", {c.in(0), b.shift(exponent, -1.0)});
  const Value slope = b.where(b.compare("eq", exponent, zero), zero, b.mul(exponent, lowered));
  return b.mul(c.grad(), slope);
}

Value exponent_gradient(GradientContext& c) {
  Builder b(c.graph);
  const Value zero = b.constant_like(0.0, c.in(0));
  const Value slope = b.mul(c.out(0), b.op("log", {c.in(0)}));
  return b.mul(c.grad(), b.where(b.compare("eq", c.in(0), zero), zero, slope));
}

}  // namespace

OpDef pow_op() {
  return make_pointwise({
      .name = "pow",
      .summary = "a to the power of b",
      .operands = 2,
      .scalar = [](std::span<const double> x, const Attributes&) { return std::pow(x[0], x[1]); },
      .gradient =
          [](GradientContext& c) {
            return std::vector<Value>{c.needed[0] ? base_gradient(c) : Value{},
                                      c.needed[1] ? exponent_gradient(c) : Value{}};
          },
      .infer = infer_floating_pointwise,
  });
}

}  // namespace lockstep
