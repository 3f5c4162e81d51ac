#include "passes/gather_params.h"

#include <gtest/gtest.h>

#include "passes/rewrite_case.h"

namespace lockstep {
namespace {

using testing::graph_of;

std::string gathered(std::string_view text, const std::vector<ParamUnit>& units) {
  PassOptions options;
  options.units = units;
  const Graph result = gather_params(graph_of(text), options);
  verify(result, Stage::kScheduled);
  return to_text(result);
}

// How often each unit is gathered, in the order of the graph: "0 1 0".
std::string order_of(std::string_view text, const std::vector<ParamUnit>& units) {
  PassOptions options;
  options.units = units;
  std::string order;
  const Graph graph = gather_params(graph_of(text), options);
  for (const Node& node : graph.nodes())
    if (node.op->name == "gather_unit_start")
      order += fmt::format("{}{}", order.empty() ? "" : " ", node.attributes.integer("unit"));
  return order;
}

const std::vector<ParamUnit> kTwo = {{2048, {{"b", 0}, {"w", 1024}}}, {1024, {{"v", 0}}}};

TEST(GatherParams, OneUnitAheadOfItsUse) {
  EXPECT_EQ(gathered(R"(graph f(x: f32[4,8], w: f32[8,8] @param, b: f32[8] @param, v: f32[8,8] @param) {
  y = matmul(x, w)
  z = matmul(y, v)
  return z
})",
                     kTwo),
            to_text(graph_of(R"(graph f(x: f32[4,8]) {
  unit0_start = gather_unit_start() {unit=0, numel=2048, dtype=f32, group="data"}
  unit0 = gather_unit_done(unit0_start) {unit=0}
  unit1_start = gather_unit_start() {unit=1, numel=1024, dtype=f32, group="data"}
  w = unit_part(unit0) {param="w", offset=1024, shape=[8,8], dtype=f32}
  y = matmul(x, w)
  unit1 = gather_unit_done(unit1_start) {unit=1}
  v = unit_part(unit1) {param="v", offset=0, shape=[8,8], dtype=f32}
  z = matmul(y, v)
  return z
})")));
}

// What is frozen keeps the type that it is stored in, beside what is trained.
TEST(GatherParams, AUnitMayHoldSeveralTypes) {
  EXPECT_EQ(gathered(R"(graph f(x: f32[4,8], w: bf16[8,8] @frozen, b: f32[8,8] @param) {
  w32 = cast(w) {dtype=f32}
  y = matmul(x, w32)
  z = matmul(y, b)
  return z
})",
                     {{2048, {{"w", 0}, {"b", 1024}}, DType::kF32}}),
            to_text(graph_of(R"(graph f(x: f32[4,8]) {
  unit0_start = gather_unit_start() {unit=0, numel=2048, dtype=f32, group="data"}
  unit0 = gather_unit_done(unit0_start) {unit=0}
  w = unit_part(unit0) {param="w", offset=0, shape=[8,8], dtype=bf16}
  w32 = cast(w) {dtype=f32}
  y = matmul(x, w32)
  b = unit_part(unit0) {param="b", offset=1024, shape=[8,8], dtype=f32}
  z = matmul(y, b)
  return z
})")));
}

// The second is gathered once for both of its uses, the first again after it.
TEST(GatherParams, AgainWhereOthersCameBetween) {
  constexpr std::string_view kText =
      R"(graph f(x: f32[8,8], w: f32[8,8] @param, b: f32[8] @param, v: f32[8,8] @param) {
  y = matmul(x, w)
  z = matmul(y, v)
  dy = matmul(z, v)
  dx = matmul(dy, w)
  return dx
})";
  EXPECT_EQ(order_of(kText, kTwo), "0 1 0");
}

// What follows from parameters alone is made again, and not kept from one stay to the next.
TEST(GatherParams, CopiesInBf16AreMadeAgain) {
  const std::string text = gathered(
      R"(graph f(x: bf16[8,8], w: f32[8,8] @param, b: f32[8] @param, v: f32[8,8] @param) {
  w16 = cast(w) {dtype=bf16}
  v16 = cast(v) {dtype=bf16}
  y = matmul(x, w16)
  z = matmul(y, v16)
  dx = matmul(z, w16)
  return dx
})",
      kTwo);
  const auto count = [&](std::string_view part) {
    int64_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("= gather_unit_start"), 3) << text;
  EXPECT_EQ(count("= cast("), 3) << text;
}

TEST(GatherParams, NothingIsGatheredWithoutUnits) {
  constexpr std::string_view kText = R"(graph f(x: f32[4,8], w: f32[8,8] @param) {
  y = matmul(x, w)
  return y
})";
  EXPECT_EQ(gathered(kText, {}), to_text(graph_of(kText)));
}

}  // namespace
}  // namespace lockstep
