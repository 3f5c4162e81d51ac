// abs(a): the magnitude. The gradient at 0 is 0.
#include <cmath>

#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef abs_op() {
  return make_pointwise({
      .name = "abs",
      .summary = "magnitude",
      .operands = 1,
      .scalar = [](std::span<const double> x, const Attributes&) { return std::fabs(x[0]); },
      .gradient =
          [](GradientContext& c) {
            Builder b(c.graph);
            return std::vector<Value>{b.mul(c.grad(), b.op("sign", {c.in(0)}))};
          },
  });
}

}  // namespace lockstep
