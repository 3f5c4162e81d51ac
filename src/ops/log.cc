// log(a): the natural logarithm; -infinity at 0, NaN below.
#include <cmath>

#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef log_op() {
  return make_pointwise({
      .name = "log",
      .summary = "natural logarithm",
      .operands = 1,
      .scalar = [](std::span<const double> x, const Attributes&) { return std::log(x[0]); },
      .gradient =
          [](GradientContext& c) { return std::vector<Value>{Builder(c.graph).div(c.grad(), c.in(0))}; },
      .infer = infer_floating_pointwise,
  });
}

}  // namespace lockstep
