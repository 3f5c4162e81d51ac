// sign(a): -1, 0 or 1, and NaN where a is NaN.
#include "ops/pointwise.h"

namespace lockstep {

OpDef sign_op() {
  OpDef def = make_pointwise({
      .name = "sign",
      .summary = "-1, 0 or 1",
      .operands = 1,
      .scalar =
          [](std::span<const double> x, const Attributes&) {
            if (x[0] > 0.0) return 1.0;
            return x[0] < 0.0 ? -1.0 : x[0];
          },
      .gradient = nullptr,
  });
  def.gradient_is_zero = true;
  return def;
}

}  // namespace lockstep
