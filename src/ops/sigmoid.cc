// sigmoid(a) = 1 / (1 + exp(-a)).
#include <cmath>

#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {

OpDef sigmoid_op() {
  return make_pointwise({
      .name = "sigmoid",
      .summary = "1 / (1 + exp(-a))",
      .operands = 1,
      .scalar = [](std::span<const double> x, const Attributes&) { return 1.0 / (1.0 + std::exp(-x[0])); },
      .gradient =
          [](GradientContext& c) {
            Builder b(c.graph);
            const Value y = c.out(0);
            const Value slope = b.mul(y, b.sub(b.constant_like(1.0, y), y));
            return std::vector<Value>{b.mul(c.grad(), slope)};
          },
      .infer = infer_floating_pointwise,
      .decompose =
          [](Graph& graph, const Node&, std::span<const Value> inputs) {
            Builder b(graph);
            const Value below = b.shift(b.exp(b.neg(inputs[0])), 1.0);
            return std::vector<Value>{b.div(b.constant_like(1.0, below), below)};
          },
  });
}

}  // namespace lockstep
