// What the table of cases cannot say about pointwise ops: refusals, and who gets the gradient at a tie or a
// corner.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "graph/interpreter.h"
#include "graph/text.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

std::string error_of(const std::string& inputs, const std::string& expression) {
  try {
    parse_graph("graph t(" + inputs + ") { y = " + expression + " return y }", all_ops());
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_REFUSED(inputs, expression, text) \
  EXPECT_NE(error_of(inputs, expression).find(text), std::string::npos) << error_of(inputs, expression)

TEST(PointwiseOps, RefuseDifferentTypes) {
  EXPECT_REFUSED("a: f32[2], b: f32[3]", "sub(a, b)", "sub(a: f32[2], b: f32[3]): operand 1 is f32[3]");
  EXPECT_REFUSED("a: f32[2], b: bf16[2]", "compare(a, b) {op=\"lt\"}", "broadcast or cast");
  EXPECT_REFUSED("c: bool[2], a: f32[3]", "where(c, a, a)", "the condition is [2], the choices are [3]");
}

TEST(PointwiseOps, RefuseElementTypesWithoutMeaning) {
  EXPECT_REFUSED("a: i32[2]", "exp(a)", "cast it first");
  EXPECT_REFUSED("a: bool[2]", "add(a, a)", "cast it to a numeric type first");
  EXPECT_REFUSED("a: f32[2]", "where(a, a, a)", "the condition must be bool");
  EXPECT_REFUSED("a: f32[2]", "logical_not(a)", "must be bool");
}

TEST(PointwiseOps, RefuseUnknownAttributes) {
  EXPECT_REFUSED("a: f32[2]", "gelu(a) {approximate=\"fast\"}", "write \"none\" or \"tanh\"");
  EXPECT_REFUSED("a: f32[2]", "compare(a, a) {op=\"less\"}", "eq, ne, lt, le, gt, ge");
  EXPECT_REFUSED("a: f32[2]", "clamp(a) {low=2.0, high=1.0}", "swap them");
}

// The gradients of op(x, y) at one point, for a gradient of 1 of the result. Unary ops ignore y.
std::vector<double> gradients_at(const std::string& op, double x, double y,
                                 const Attributes& attributes = {}) {
  Graph graph(all_ops(), "gradients");
  const Type type{DType::kF32, {1}};
  std::vector<Value> inputs{graph.add_input("x", type), graph.add_input("y", type)};
  inputs.resize(static_cast<size_t>(all_ops().get(op).max_inputs));
  const Value dy = graph.add_input("dy", type);
  graph.emit_all(op, inputs, attributes);
  GradientContext context{graph, graph.nodes()[0], {dy}, std::vector<bool>(inputs.size(), true)};
  for (const Value gradient : context.node.op->gradient(context)) graph.add_output(gradient);
  std::vector<double> results;
  const RefTensors bound{{"x", {type, {x}}}, {"y", {type, {y}}}, {"dy", {type, {1.0}}}};
  for (const RefTensor& tensor : interpret(graph, bound)) results.push_back(tensor.scalar());
  return results;
}

using Doubles = std::vector<double>;

TEST(PointwiseGradients, TiesGoToTheFirst) {
  EXPECT_EQ(gradients_at("maximum", 2, 2), (Doubles{1, 0}));
  EXPECT_EQ(gradients_at("minimum", 2, 2), (Doubles{1, 0}));
  EXPECT_EQ(gradients_at("maximum", 1, 2), (Doubles{0, 1}));
}

TEST(PointwiseGradients, CornersAreDefined) {
  EXPECT_EQ(gradients_at("relu", 0, 0), Doubles{0});
  EXPECT_EQ(gradients_at("abs", 0, 0), Doubles{0});
  EXPECT_EQ(gradients_at("clamp", 1, 0, {{"low", 0.0}, {"high", 1.0}}), Doubles{1});
  EXPECT_EQ(gradients_at("pow", 0, 0), (Doubles{0, 0}));
  EXPECT_EQ(gradients_at("pow", 0, 2), (Doubles{0, 0}));
}

TEST(PointwiseGradients, NothingBecomesNaNFarOut) {
  for (const char* op : {"sigmoid", "tanh", "erf", "gelu", "silu"})
    for (const double x : {-200.0, 200.0})
      EXPECT_FALSE(std::isnan(gradients_at(op, x, 0)[0])) << op << " " << x;
}

}  // namespace
}  // namespace lockstep
