// neg(a) = -a.
#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef neg_op() {
  return make_pointwise({
      .name = "neg",
      .summary = "-a",
      .operands = 1,
      .scalar = [](std::span<const double> x, const Attributes&) { return -x[0]; },
      .gradient = [](GradientContext& c) { return std::vector<Value>{Builder(c.graph).neg(c.grad())}; },
      .linear = true,
  });
}

}  // namespace lockstep
