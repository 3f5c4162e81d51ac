// sub(a, b) = a - b.
#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef sub_op() {
  return make_pointwise({
      .name = "sub",
      .summary = "a - b",
      .operands = 2,
      .scalar = [](std::span<const double> x, const Attributes&) { return x[0] - x[1]; },
      .gradient =
          [](GradientContext& c) {
            Builder b(c.graph);
            return std::vector<Value>{c.grad(), c.needed[1] ? b.neg(c.grad()) : Value{}};
          },
      .linear = true,
  });
}

}  // namespace lockstep
