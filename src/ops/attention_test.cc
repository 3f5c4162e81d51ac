// What the attention ops refuse, and their cost.
#include "ops/op_errors.h"

namespace lockstep {
namespace {

using testing::expect_error;

const std::string kQkv = "q: f32[2,4,6,8], k: f32[2,4,6,8], v: f32[2,4,6,8]";

TEST(Attention, RefusesOperandsThatDoNotFit) {
  expect_error("q: f32[2,4,6,8], k: f32[2,4,4,8], v: f32[2,4,4,8]", "y, l = attention(q, k, v)",
               "6 query heads cannot share 4 key heads evenly");
  expect_error("q: f32[2,4,6,8], k: f32[2,4,6,4], v: f32[2,4,6,4]", "y, l = attention(q, k, v)",
               "heads of q are 8 wide, those of k and v 4");
  expect_error("q: f32[2,4,6,8], k: f32[2,4,6,8], v: f32[2,5,6,8]", "y, l = attention(q, k, v)",
               "k and v must have one type");
}

TEST(Attention, RefusesMasksThatAreNotAnnounced) {
  expect_error(kQkv + ", m: u8[2,4]", "y, l = attention(q, k, v, m)",
               "so 3 operands are expected, 4 are given");
  expect_error(kQkv, "y, l = attention(q, k, v) {mask=\"key\"}",
               "write none, keys, documents or keys+documents");
  expect_error(kQkv + ", m: i32[2,4]", "y, l = attention(q, k, v, m) {mask=\"keys\"}",
               "must be u8 or bool [2,4]");
  expect_error(kQkv + ", d: u8[2,4]", "y, l = attention(q, k, v, d) {mask=\"documents\"}",
               "must be i32[2,4]");
}

TEST(Attention, RefusesCapsAndDropoutThatCannotBe) {
  expect_error(kQkv, "y, l = attention(q, k, v) {cap=-1.0}", "write 0 for none, or what scores stay below");
  expect_error(kQkv, "y, l = attention(q, k, v) {dropout=1.0}", "it must be at least 0 and below 1");
  expect_error(kQkv, "y, l = attention(q, k, v) {dropout=0.1}",
               "and there is dropout, so 4 operands are expected, 3 are given");
  expect_error(kQkv + ", r: i32[2]", "y, l = attention(q, k, v, r) {dropout=0.1}", "must be i64[2]");
}

TEST(Attention, RefusesPackedWidthThatIsNoMultipleOfHeads) {
  expect_error("x: f32[2,4,50]", "y, l = attention_qkv(x) {heads=4, kv_heads=2}",
               "not a multiple of heads + 2 * kv_heads = 8");
  expect_error("x: f32[2,4,48]", "y, l = attention_qkv(x) {heads=3, kv_heads=2}",
               "must be a multiple of kv_heads");
}

TEST(Attention, CostCountsVisiblePairsOnly) {
  const auto flops = [](const std::string& attributes) {
    const Graph graph = parse_graph(
        "graph t(q: f32[1,4,2,8], k: f32[1,4,2,8], v: f32[1,4,2,8]) {\n  y, l = "
        "attention(q, k, v) {" +
            attributes + "}\n  return y\n}\n",
        all_ops(), "t");
    return cost_of(graph, graph.nodes()[0]).flops;
  };
  EXPECT_EQ(flops("causal=false"), 4.0 * 8 * 2 * 16);
  EXPECT_EQ(flops("causal=true"), 4.0 * 8 * 2 * (1 + 2 + 3 + 4));
  EXPECT_EQ(flops("window=2"), 4.0 * 8 * 2 * (1 + 2 + 2 + 2));
}

}  // namespace
}  // namespace lockstep
