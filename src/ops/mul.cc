// mul(a, b) = a * b.
#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef mul_op() {
  return make_pointwise({
      .name = "mul",
      .summary = "a * b",
      .operands = 2,
      .scalar = [](std::span<const double> x, const Attributes&) { return x[0] * x[1]; },
      .gradient =
          [](GradientContext& c) {
            Builder b(c.graph);
            return std::vector<Value>{c.needed[0] ? b.mul(c.grad(), c.in(1)) : Value{},
                                      c.needed[1] ? b.mul(c.grad(), c.in(0)) : Value{}};
          },
  });
}

}  // namespace lockstep
