#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/interpreter.h"
#include "graph/text.h"
#include "ops/fused_program.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

std::string error_of(const std::string& program, const std::string& op = "fused") {
  std::string escaped;
  for (const char c : program) escaped += c == '"' ? std::string("\\\"") : std::string(1, c);
  try {
    parse_graph(
        fmt::format(
            "graph f(x: f32[2,3], b: f32[3]) {{ y = {}(x, b) {{program=\"{}\", shape=[2,3]}} return y }}", op,
            escaped),
        all_ops());
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Fused, IsInterpretedByWhatItUnfoldsTo) {
  const Graph graph = parse_graph(R"(graph f(x: f32[2,3], b: f32[3]) {
  s, h = fused_sum(x, b) {program="t0 = add(a0, a1); t1 = mul(t0, 2.0); t2 = sum(t1) {axes=[0]}; return t2, t0", shape=[2,3]}
  return s, h
}
)",
                                  all_ops());
  RefTensor x({DType::kF32, {2, 3}});
  RefTensor b({DType::kF32, {3}});
  x.data = {1, 2, 3, 4, 5, 6};
  b.data = {10, 20, 30};
  const auto results = interpret(graph, {{"x", x}, {"b", b}});
  EXPECT_EQ(results[0].data, (std::vector<double>{50, 94, 138}));
  EXPECT_EQ(results[1].data, (std::vector<double>{11, 22, 33, 14, 25, 36}));
}

TEST(Fused, ErrorsNameThePlaceInTheProgram) {
  EXPECT_NE(
      error_of("t0 = add(a0, a2); return t0").find("program:1:14: a2 is neither an operand (there are 2)"),
      std::string::npos);
  EXPECT_NE(error_of("t0 = matmul(a0, a1); return t0").find("matmul is not pointwise"), std::string::npos);
  EXPECT_NE(error_of("t1 = add(a0, a1); return t1").find("write t0"), std::string::npos);
  EXPECT_NE(error_of("t0 = add(a0, a1); return a0").find("only a statement can be returned"),
            std::string::npos);
  EXPECT_NE(error_of("t0 = add(a0, a1); return t0, t0").find("returned twice"), std::string::npos);
  EXPECT_NE(error_of("t0 = add(a0, 1.0:bf16); return t0").find("they must be equal"), std::string::npos);
  EXPECT_NE(error_of("t0 = add(a0, a1); t1 = sum(t0); return t1").find("use fused_sum"), std::string::npos);
  EXPECT_NE(error_of("t0 = add(a0, a1); return t0", "fused_sum").find("must be a sum or mean"),
            std::string::npos);
  EXPECT_NE(error_of("t0 = sum(a0); t1 = add(a0, a1); return t0", "fused_sum").find("a reduction comes last"),
            std::string::npos);
}

TEST(Fused, NumbersPrintExactly) {
  const FusedProgram program = parse_fused_program(
      "t0 = add(a0, -inf); t1 = mul(t0, 0.1); t2 = add(t1, 1e-30:f16); return t2", all_ops(), 1);
  EXPECT_EQ(to_text(program), "t0 = add(a0, -inf); t1 = mul(t0, 0.1); t2 = add(t1, 1e-30:f16); return t2");
}

}  // namespace
}  // namespace lockstep
