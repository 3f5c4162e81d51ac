// maximum(a, b): the larger one; NaN if either is. Where they are equal the gradient goes to a alone.
#include <cmath>

#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef maximum_op() {
  return make_pointwise({
      .name = "maximum",
      .summary = "the larger of two",
      .operands = 2,
      .scalar = [](std::span<const double> x,
                   const Attributes&) { return std::isnan(x[0]) || x[0] >= x[1] ? x[0] : x[1]; },
      .gradient =
          [](GradientContext& c) {
            Builder b(c.graph);
            const Value first = b.compare("ge", c.in(0), c.in(1));
            const Value zero = b.constant_like(0.0, c.grad());
            return std::vector<Value>{c.needed[0] ? b.where(first, c.grad(), zero) : Value{},
                                      c.needed[1] ? b.where(first, zero, c.grad()) : Value{}};
          },
  });
}

}  // namespace lockstep
