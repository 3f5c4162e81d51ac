// clamp(a) {low, high}: a limited to [low, high]; NaN where a is. The gradient passes where a was not
// changed.
#include <limits>

#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Type> infer(const InferContext& c) {
  const double low = c.attributes().number("low");
  const double high = c.attributes().number("high");
  if (!(low <= high)) c.fail("low {} is not below high {}; swap them", low, high);
  return infer_pointwise(c);
}

}  // namespace

OpDef clamp_op() {
  return make_pointwise({
      .name = "clamp",
      .summary = "limited to [low, high]",
      .operands = 1,
      .scalar =
          [](std::span<const double> x, const Attributes& a) {
            return x[0] < a.number("low")    ? a.number("low")
                   : x[0] > a.number("high") ? a.number("high")
                                             : x[0];
          },
      .gradient =
          [](GradientContext& c) {
            Builder b(c.graph);
            const Value kept = b.compare("eq", c.in(0), c.out(0));
            return std::vector<Value>{b.where(kept, c.grad(), b.constant_like(0.0, c.grad()))};
          },
      .attributes = {{"low", -kInfinity, "smallest result"}, {"high", kInfinity, "largest result"}},
      .infer = infer,
  });
}

}  // namespace lockstep
