// logical_not(a): true where a is false.
#include "ops/pointwise.h"

namespace lockstep {

OpDef logical_not_op() {
  OpDef def = make_pointwise({
      .name = "logical_not",
      .summary = "true where a is false",
      .operands = 1,
      .scalar = [](std::span<const double> x, const Attributes&) { return x[0] == 0.0 ? 1.0 : 0.0; },
      .gradient = nullptr,
      .infer =
          [](const InferContext& c) {
            if (c.type(0).dtype != DType::kBool) c.fail("operand 0 must be bool; use compare with 0");
            return std::vector<Type>{c.type(0)};
          },
  });
  def.gradient_is_zero = true;
  return def;
}

}  // namespace lockstep
