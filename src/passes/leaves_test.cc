// What leaves share and add up, before and after it becomes values and collectives.
#include "passes/leaves.h"

#include "passes/autodiff.h"
#include "passes/rewrite_case.h"

namespace lockstep::testing {
namespace {

void expect_lowered(std::string_view before, std::string_view after) {
  const Graph result = lower_leaves(graph_of(before), {});
  verify(result, Stage::kDifferentiated);
  EXPECT_EQ(to_text(result), to_text(graph_of(after)));
}

TEST(Leaves, OneWorkerAddsItsOwn) {
  expect_lowered(R"(graph f(x: f32[4,8], w: f32[8,2] @param, v: f32[8,2] @param) {
      x0, x1 = spread(x) {leaves=2}
      a = matmul(x0, w)
      b = matmul(x1, v)
      y = leaf_sum(a, b)
      return y
    })",
                 R"(graph f(x: f32[4,8], w: f32[8,2] @param, v: f32[8,2] @param) {
      a = matmul(x, w)
      b = matmul(x, v)
      y = leaf_sum(a, b)
      return y
    })");
}

TEST(Leaves, WorkersAddWhatTheirOwnGave) {
  expect_lowered(R"(graph f(a: bf16[4], b: bf16[4]) {
      y = leaf_sum(a, b) {size=2}
      return y
    })",
                 R"(graph f(a: bf16[4], b: bf16[4]) {
      y_own = leaf_sum(a, b) {wide=true}
      y = all_reduce(y_own) {group="tensor", size=2}
      cast = cast(y) {dtype=bf16}
      return cast
    })");
}

// A collective adds in f32 and rounds once, as leaf_sum does.
TEST(Leaves, OneLeafAWorkerIsSummedAsItIs) {
  expect_lowered(R"(graph f(a: bf16[4]) {
      y = leaf_sum(a) {size=4}
      return y
    })",
                 R"(graph f(a: bf16[4]) {
      y = all_reduce(a) {group="tensor", size=4}
      return y
    })");
}

// Every worker has what all leaves add to a loss, and joins it.
TEST(Leaves, ALossIsJoinedFromTheColumnsOfAllLeaves) {
  expect_lowered(R"(graph f(a: bf16[5,4], b: bf16[5,4], labels: i32[5], weights: f32[5]) {
      loss, count, lse = cross_entropy_leaves(a, b, labels, weights) {leaves=2, first=8, classes=16, size=2}
      return loss, count
    })",
                 R"(graph f(a: bf16[5,4], b: bf16[5,4], labels: i32[5], weights: f32[5]) {
      cross_entropy_part = cross_entropy_part(a, labels) {first=8, classes=16}
      cross_entropy_part_1 = cross_entropy_part(b, labels) {first=12, classes=16}
      concat = concat(cross_entropy_part, cross_entropy_part_1) {axis=0}
      all_gather = all_gather(concat) {group="tensor", size=2}
      loss, count, lse = cross_entropy_join(all_gather, labels, weights) {classes=16}
      return loss, count
    })");
}

// The sum over leaves of a value that all read is the gradient of spread.
TEST(Leaves, BackwardAddsByTheSameTree) {
  const Graph graph = differentiate(graph_of(R"(graph f(x: f32[4,8] @param, w: f32[8,2], v: f32[8,2]) {
      x0, x1 = spread(x) {leaves=2, size=2}
      a = matmul(x0, w)
      b = matmul(x1, v)
      y = leaf_sum(a, b) {size=2}
      loss = sum(y)
      return loss
    })"));
  const Graph lowered = lower_leaves(graph, {});
  int64_t sums = 0;
  for (const Node& node : lowered.nodes()) sums += node.op->name == "all_reduce" ? 1 : 0;
  EXPECT_EQ(sums, 2);
}

}  // namespace
}  // namespace lockstep::testing
