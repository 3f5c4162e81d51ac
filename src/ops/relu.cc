// relu(a) = max(a, 0), NaN where a is. The gradient at 0 is 0, and it is read off the result, so that nothing
// needs to keep the operand.
#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef relu_op() {
  return make_pointwise({
      .name = "relu",
      .summary = "max(a, 0)",
      .operands = 1,
      .scalar = [](std::span<const double> x, const Attributes&) { return x[0] < 0.0 ? 0.0 : x[0]; },
      .gradient =
          [](GradientContext& c) {
            Builder b(c.graph);
            const Value zero = b.constant_like(0.0, c.grad());
            return std::vector<Value>{b.where(b.compare("le", c.out(0), zero), zero, c.grad())};
          },
  });
}

}  // namespace lockstep
