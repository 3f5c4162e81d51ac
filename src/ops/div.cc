// div(a, b) = a / b.
#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef div_op() {
  return make_pointwise({
      .name = "div",
      .summary = "a / b",
      .operands = 2,
      .scalar = [](std::span<const double> x, const Attributes&) { return x[0] / x[1]; },
      .gradient =
          [](GradientContext& c) {
            Builder b(c.graph);
            const Value da = b.div(c.grad(), c.in(1));
            return std::vector<Value>{da, c.needed[1] ? b.neg(b.mul(da, c.out(0))) : Value{}};
          },
  });
}

}  // namespace lockstep
