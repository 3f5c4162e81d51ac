// tanh(a): the hyperbolic tangent.
#include <cmath>

#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef tanh_op() {
  return make_pointwise({
      .name = "tanh",
      .summary = "hyperbolic tangent",
      .operands = 1,
      .scalar = [](std::span<const double> x, const Attributes&) { return std::tanh(x[0]); },
      .gradient =
          [](GradientContext& c) {
            Builder b(c.graph);
            const Value square = b.mul(c.out(0), c.out(0));
            return std::vector<Value>{b.mul(c.grad(), b.sub(b.constant_like(1.0, square), square))};
          },
      .infer = infer_floating_pointwise,
  });
}

}  // namespace lockstep
