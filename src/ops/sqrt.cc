// sqrt(a): the square root; NaN below 0, and its gradient at 0 is infinite.
#include <cmath>

#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef sqrt_op() {
  return make_pointwise({
      .name = "sqrt",
      .summary = "square root",
      .operands = 1,
      .scalar = [](std::span<const double> x, const Attributes&) { return std::sqrt(x[0]); },
      .gradient =
          [](GradientContext& c) {
            Builder b(c.graph);
            return std::vector<Value>{b.div(b.scale(c.grad(), 0.5), c.out(0))};
          },
      .infer = infer_floating_pointwise,
  });
}

}  // namespace lockstep
