// gelu(a) {approximate}: a times the normal distribution function of a, exact ("none", through erf) or by the
// tanh formula ("tanh", GPT-2's); and gelu_grad(a, dy) {approximate} = dy times its slope at a.
#include <cmath>
#include <numbers>

#include "ops/builder.h"
#include "ops/pointwise.h"

namespace lockstep {
namespace {

constexpr double kCubic = 0.044715;
const double kTanhScale = std::sqrt(2.0 / std::numbers::pi);

bool is_tanh(const Attributes& attributes) { return attributes.text("approximate") == "tanh"; }

double gelu(double x, bool approximate) {
  if (approximate) return 0.5 * x * (1.0 + std::tanh(kTanhScale * (x + kCubic * x * x * x)));
  return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
}

double slope(double x, bool approximate) {
  if (approximate) {
    const double t = std::tanh(kTanhScale * (x + kCubic * x * x * x));
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * kTanhScale * (1.0 + 3.0 * kCubic * x * x);
  }
  const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * density;
}

std::vector<Type> infer(const InferContext& c) {
  const std::string& approximate = c.attributes().text("approximate");
  if (approximate != "none" && approximate != "tanh")
    c.fail("approximate is \"{}\"; write \"none\" or \"tanh\"", approximate);
  return infer_floating_pointwise(c);
}

std::vector<AttributeDef> attributes() {
  return {{"approximate", std::string("none"), "\"none\" (through erf) or \"tanh\""}};
}

// t = tanh(kTanhScale (x + kCubic x^3)), or erf(x / sqrt 2): the distribution function is (1 + t) / 2.
Value tanh_or_erf(Builder& b, Value x, bool approximate) {
  if (!approximate) return b.op("erf", {b.scale(x, 1 / std::numbers::sqrt2)});
  return b.tanh(b.scale(b.mul(x, b.shift(b.scale(b.mul(x, x), kCubic), 1.0)), kTanhScale));
}

std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const Value t = tanh_or_erf(b, inputs[0], is_tanh(node.attributes));
  return {b.mul(inputs[0], b.scale(b.shift(t, 1.0), 0.5))};
}

std::vector<Value> decompose_grad(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const Value x = inputs[0], square = b.mul(x, x);
  const bool approximate = is_tanh(node.attributes);
  const Value t = tanh_or_erf(b, x, approximate);
  Value density;  // the slope of (1 + t) / 2
  if (approximate)
    density = b.mul(b.shift(b.neg(b.mul(t, t)), 1.0),
                    b.scale(b.shift(b.scale(square, 3.0 * kCubic), 1.0), 0.5 * kTanhScale));
  else
    density = b.scale(b.exp(b.scale(square, -0.5)), std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return {b.mul(inputs[1], b.add(b.scale(b.shift(t, 1.0), 0.5), b.mul(x, density)))};
}

}  // namespace

OpDef gelu_op() {
  return make_pointwise({
      .name = "gelu",
      .summary = "a times the normal distribution function of a",
      .operands = 1,
      .scalar = [](std::span<const double> x, const Attributes& a) { return gelu(x[0], is_tanh(a)); },
      .gradient =
          [](GradientContext& c) {
            return std::vector<Value>{c.graph.emit("gelu_grad", {c.in(0), c.grad()}, c.attributes())};
          },
      .attributes = attributes(),
      .infer = infer,
      .decompose = decompose,
  });
}

OpDef gelu_grad_op() {
  return make_pointwise({
      .name = "gelu_grad",
      .summary = "gradient of gelu: dy times the slope at a",
      .operands = 2,
      .scalar = [](std::span<const double> x, const Attributes& a) { return x[1] * slope(x[0], is_tanh(a)); },
      .gradient = nullptr,
      .attributes = attributes(),
      .infer = infer,
      .decompose = decompose_grad,
  });
}

}  // namespace lockstep
