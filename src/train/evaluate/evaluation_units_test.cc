#include "train/evaluate/evaluation_units.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

// "a b | c" for units of these parameters.
std::string units_text(const std::vector<ParamUnit>& units) {
  std::string text;
  for (const ParamUnit& unit : units) {
    if (!text.empty()) text += " |";
    for (const ParamUnit::Part& part : unit.parts)
      text += fmt::format("{}{}", text.empty() ? "" : " ", part.name);
  }
  return text;
}

// Two blocks behind a table, of parameters of 4 KiB each; those of the second come first.
constexpr std::string_view kTwoBlocks =
    R"(graph f(ids: i32[4], v: f32[32,32] @param, table: f32[100,32] @param, w: f32[32,32] @param) {
  x = embedding(table, ids)
  m = checkpoint(x)
  y = matmul(m, w)
  n = checkpoint(y)
  z = matmul(n, v)
  return z
})";

std::string units_of(std::string_view text, const std::function<bool(std::string_view)>& is_whole,
                     int64_t bucket_bytes = 1024) {
  return units_text(evaluation_units(parse_graph(text, all_ops()), is_whole, bucket_bytes));
}

TEST(EvaluationUnits, AreBlocksInTheirOrder) {
  EXPECT_EQ(units_of(kTwoBlocks, [](std::string_view) { return false; }), "table | w | v");
  EXPECT_EQ(units_of(
                kTwoBlocks, [](std::string_view) { return false; }, 8192),
            "table | w v");
}

TEST(EvaluationUnits, HaveWhatIsNotWhole) {
  EXPECT_EQ(units_of(kTwoBlocks, [](std::string_view name) { return name == "w"; }), "table | v");
  EXPECT_EQ(units_of(kTwoBlocks, [](std::string_view) { return true; }), "");
}

// The cast of what is stored in another type stands at the beginning of the graph.
constexpr std::string_view kStored =
    R"(graph f(x: f32[4,32], w: bf16[32,32] @frozen, a: f32[32,32] @param, v: bf16[32,32] @frozen) {
  w32 = cast(w) {dtype=f32}
  v32 = cast(v) {dtype=f32}
  m = checkpoint(x)
  y = matmul(m, w32)
  y2 = matmul(y, a)
  n = checkpoint(y2)
  z = matmul(n, v32)
  return z
})";

TEST(EvaluationUnits, HoldParametersAsTheyAreStored) {
  const auto none = [](std::string_view) { return false; };
  EXPECT_EQ(units_of(kStored, none), "w a | v");
  const auto units = evaluation_units(parse_graph(kStored, all_ops()), none, 1024);
  EXPECT_EQ(units.at(0).dtype, DType::kF32);
  EXPECT_EQ(units.at(0).numel, 2048);
  EXPECT_EQ(units.at(0).offset_bytes(units[0].parts.at(1)), 4096);
  // What all are stored in.
  const auto frozen = [](std::string_view name) { return name == "a"; };
  const auto stored = evaluation_units(parse_graph(kStored, all_ops()), frozen, 1024);
  EXPECT_EQ(stored.at(0).dtype, DType::kBF16);
  EXPECT_EQ(stored.at(0).numel, 1024);
}

}  // namespace
}  // namespace lockstep
