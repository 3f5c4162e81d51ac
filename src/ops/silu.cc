// silu(a) = a * sigmoid(a), and silu_grad(a, dy) = dy times its slope at a. The slope is one op rather than a
// graph of nine, so that it costs one sweep of the tile even where nothing is fused.
#include <cmath>

#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace

OpDef silu_op() {
  return make_pointwise({
      .name = "silu",
      .summary = "a * sigmoid(a)",
      .operands = 1,
      .scalar = [](std::span<const double> x, const Attributes&) { return x[0] * sigmoid(x[0]); },
      .gradient =
          [](GradientContext& c) {
            return std::vector<Value>{c.graph.emit("silu_grad", {c.in(0), c.grad()})};
          },
      .infer = infer_floating_pointwise,
      .decompose =
          [](Graph& graph, const Node&, std::span<const Value> inputs) {
            Builder b(graph);
            return std::vector<Value>{b.mul(inputs[0], b.op("sigmoid", {inputs[0]}))};
          },
  });
}

OpDef silu_grad_op() {
  return make_pointwise({
      .name = "silu_grad",
      .summary = "gradient of silu: dy times the slope at a",
      .operands = 2,
      .scalar =
          [](std::span<const double> x, const Attributes&) {
            const double s = sigmoid(x[0]);
            return x[1] * s * (1.0 + x[0] * (1.0 - s));
          },
      .gradient = nullptr,
      .infer = infer_floating_pointwise,
      .decompose =
          [](Graph& graph, const Node&, std::span<const Value> inputs) {
            Builder b(graph);
            const Value s = b.op("sigmoid", {inputs[0]});
            const Value curve = b.shift(b.mul(inputs[0], b.shift(b.neg(s), 1.0)), 1.0);
            return std::vector<Value>{b.mul(inputs[1], b.mul(s, curve))};
          },
  });
}

}  // namespace lockstep
