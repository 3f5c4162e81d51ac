// add(a, b) = a + b.
#include "ops/pointwise.h"

namespace lockstep {

OpDef add_op() {
  return make_pointwise({
      .name = "add",
      .summary = "a + b",
      .operands = 2,
      .scalar = [](std::span<const double> x, const Attributes&) { return x[0] + x[1]; },
      .gradient =
          [](GradientContext& c) {
            return std::vector<Value>{c.grad(), c.grad()};
          },
      .linear = true,
  });
}

}  // namespace lockstep
