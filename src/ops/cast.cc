// cast(a) {dtype}: the same numbers in another element type. To 16-bit types it rounds to nearest even, to
// integers it truncates, to bool it asks whether the number is not zero.
#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef cast_op() {
  OpDef def = make_pointwise({
      .name = "cast",
      .summary = "the same numbers in another element type",
      .operands = 1,
      .scalar =
          [](std::span<const double> x, const Attributes& a) {
            // Floating rounding is the interpreter's choice; truncation is what the op means.
            const DType dtype = a.dtype("dtype");
            return is_floating(dtype) ? x[0] : round_to(dtype, x[0]);
          },
      .gradient =
          [](GradientContext& c) {
            return std::vector<Value>{Builder(c.graph).cast(c.grad(), c.type(c.in(0)).dtype)};
          },
      .attributes = {{"dtype", DType::kF32, "element type of the result", true}},
      .infer =
          [](const InferContext& c) {
            return std::vector<Type>{{c.attributes().dtype("dtype"), c.shape(0)}};
          },
  });
  def.inplace = {};  // elements may change their width
  return def;
}

}  // namespace lockstep
