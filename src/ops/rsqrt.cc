// rsqrt(a) = 1 / sqrt(a).
#include <cmath>

#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef rsqrt_op() {
  return make_pointwise({
      .name = "rsqrt",
      .summary = "1 / sqrt(a)",
      .operands = 1,
      .scalar = [](std::span<const double> x, const Attributes&) { return 1.0 / std::sqrt(x[0]); },
      .gradient =
          [](GradientContext& c) {
            Builder b(c.graph);
            const Value cube = b.mul(c.out(0), b.mul(c.out(0), c.out(0)));
            return std::vector<Value>{b.mul(b.scale(c.grad(), -0.5), cube)};
          },
      .infer = infer_floating_pointwise,
  });
}

}  // namespace lockstep
