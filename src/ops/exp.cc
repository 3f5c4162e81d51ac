// exp(a) = e to the power of a.
#include <cmath>

#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef exp_op() {
  return make_pointwise({
      .name = "exp",
      .summary = "e to the power of a",
      .operands = 1,
      .scalar = [](std::span<const double> x, const Attributes&) { return std::exp(x[0]); },
      .gradient =
          [](GradientContext& c) {
            Builder b(c.graph);
            return std::vector<Value>{b.mul(c.grad(), c.out(0))};
          },
      .infer = infer_floating_pointwise,
  });
}

}  // namespace lockstep
