// erf(a): the error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to a.
#include <cmath>
#include <numbers>

#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef erf_op() {
  return make_pointwise({
      .name = "erf",
      .summary = "error function",
      .operands = 1,
      .scalar = [](std::span<const double> x, const Attributes&) { return std::erf(x[0]); },
      .gradient =
          [](GradientContext& c) {
            Builder b(c.graph);
            const Value bell = b.exp(b.neg(b.mul(c.in(0), c.in(0))));
            return std::vector<Value>{b.mul(c.grad(), b.scale(bell, 2.0 * std::numbers::inv_sqrtpi))};
          },
      .infer = infer_floating_pointwise,
  });
}

}  // namespace lockstep
