// Fusing an addition or a relu into a norm must not change a bit, whatever the storage; and labels are
// checked when a step runs.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text.h"
#include "ops/op_driver.h"
#include "ops/registry.h"

namespace lockstep::testing {
namespace {

std::vector<std::string> bytes_of(const std::string& text, const std::string& dtype) {
  OpCase op_case;
  op_case.text = text;
  op_case = with_dtype(op_case, dtype);
  const Graph graph = parse_graph(op_case.text, all_ops(), "norm_bits");
  PassOptions options;
  options.disabled = {"autodiff"};
  return run_for_bytes(graph, make_inputs(graph, op_case), *make_cpu_backend(2), options);
}

class NormBits : public ::testing::TestWithParam<const char*> {};

TEST_P(NormBits, ResidualAdditionBeforeLayerNorm) {
  const std::string inputs = "graph t(x: f32[90,77], r: f32[90,77], w: f32[77], b: f32[77]) {\n";
  EXPECT_EQ(
      bytes_of(inputs + "  s, y, m, q = add_layer_norm(x, r, w, b)\n  return s, y, m, q\n}\n", GetParam()),
      bytes_of(inputs + "  s = add(x, r)\n  y, m, q = layer_norm(s, w, b)\n  return s, y, m, q\n}\n",
               GetParam()));
}

TEST_P(NormBits, ResidualAdditionBeforeRmsNorm) {
  const std::string inputs = "graph t(x: f32[90,77], r: f32[90,77], w: f32[77]) {\n";
  EXPECT_EQ(bytes_of(inputs + "  s, y, q = add_rms_norm(x, r, w)\n  return s, y, q\n}\n", GetParam()),
            bytes_of(inputs + "  s = add(x, r)\n  y, q = rms_norm(s, w)\n  return s, y, q\n}\n", GetParam()));
}

TEST_P(NormBits, ResidualGradientAddedByLayerNormGrad) {
  const std::string inputs =
      "graph t(g: f32[900,77], x: f32[900,77], w: f32[77], r: f32[900,77]) {\n  y, m, q = layer_norm(x, w, "
      "w)\n";
  EXPECT_EQ(
      bytes_of(inputs + "  d, dw, db = layer_norm_grad(g, x, w, m, q, r)\n  return d, dw, db\n}\n",
               GetParam()),
      bytes_of(
          inputs + "  n, dw, db = layer_norm_grad(g, x, w, m, q)\n  d = add(r, n)\n  return d, dw, db\n}\n",
          GetParam()));
}

TEST_P(NormBits, ResidualGradientAddedByRmsNormGrad) {
  const std::string inputs =
      "graph t(g: f32[900,77], x: f32[900,77], w: f32[77], r: f32[900,77]) {\n  y, q = rms_norm(x, w)\n";
  EXPECT_EQ(bytes_of(inputs + "  d, dw = rms_norm_grad(g, x, w, q, r)\n  return d, dw\n}\n", GetParam()),
            bytes_of(inputs + "  n, dw = rms_norm_grad(g, x, w, q)\n  d = add(r, n)\n  return d, dw\n}\n",
                     GetParam()));
}

// Whoever holds a part of the blocks makes their sums; together they are the norm of the whole.
TEST(NormHalves, HaveTheBitsOfTheWhole) {
  const std::string inputs = "graph t(g: f32[70001], h: bf16[3000]) {\n";
  EXPECT_EQ(
      bytes_of(inputs + "  n = global_norm(g, h)\n  return n\n}\n", "f32"),
      bytes_of(inputs + "  g0 = slice(g) {axis=0, begin=0, end=2048}\n  g1 = slice(g) {axis=0, begin=2048, "
                        "end=70001}\n  a = square_sums(g0)\n  b = square_sums(g1, h)\n"
                        "  n = norm_of_squares(a, b)\n  return n\n}\n",
               "f32"));
}

INSTANTIATE_TEST_SUITE_P(Storage, NormBits, ::testing::Values("f32", "bf16", "f16"));

TEST(BatchNormBits, ReluInsideBatchNorm) {
  const auto gradients = [](const std::string& statements) {
    OpCase op_case;
    op_case.text = "graph t(x: f32[900,77] @param, w: f32[77] @param, b: f32[77] @param) {\n" + statements +
                   "\n  return z, m, v\n}\n";
    const Graph graph = case_graph(op_case, true);
    PassOptions options;
    options.disabled = {"autodiff", "import_patterns"};
    return run_for_bytes(graph, make_inputs(graph, op_case), *make_cpu_backend(2), options);
  };
  EXPECT_EQ(gradients("  z, m, q, v = batch_norm(x, w, b) {relu=true}"),
            gradients("  y, m, q, v = batch_norm(x, w, b)\n  z = relu(y)"));
}

TEST(CrossEntropy, NamesTheFirstBadLabel) {
  const Graph graph = parse_graph(
      "graph t(z: f32[4,3], y: i32[4]) {\n  loss, n, lse = cross_entropy(z, y)\n  return loss, n\n}\n",
      all_ops(), "test");
  RefTensors inputs{{"z", RefTensor({DType::kF32, {4, 3}})},
                    {"y", RefTensor({DType::kI32, {4}}, {1, -100, 3, -1})}};
  PassOptions options;
  options.disabled = {"autodiff"};
  for (const int threads : {1, 3}) {
    try {
      run_for_bytes(graph, inputs, *make_cpu_backend(threads), options);
      FAIL() << "label 3 of 3 classes was accepted";
    } catch (const UserError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("cross_entropy(z: f32[4,3], y: i32[4]): row 2 has label 3; labels lie in [0, 3)"),
                std::string::npos)
          << text;
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
