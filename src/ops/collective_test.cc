// Types of the collectives, what they refuse, and their gradients as text.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/interpreter.h"
#include "graph/text.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

Graph graph_with(const std::string& node) {
  return parse_graph(
      "graph t(x: f32[8,6], mask: bool[8], token: f32[0]) {\n  y = " + node + "\n  return y\n}", all_ops());
}
std::string type_of(const std::string& node) {
  const Graph graph = graph_with(node);
  return to_string(graph.type(graph.find("y")));
}
std::string error_of(const std::string& node) {
  try {
    graph_with(node);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

#define EXPECT_REFUSED(node, part) EXPECT_NE(error_of(node).find(part), std::string::npos) << error_of(node)

TEST(Collectives, TypesFollowFromTheSizeOfTheGroup) {
  EXPECT_EQ(type_of("all_reduce(x) {group=\"g\", size=4}"), "f32[8,6]");
  EXPECT_EQ(type_of("all_gather(x) {group=\"g\", size=4, axis=1}"), "f32[8,24]");
  EXPECT_EQ(type_of("reduce_scatter(x) {group=\"g\", size=4}"), "f32[2,6]");
  EXPECT_EQ(type_of("all_to_all(x) {group=\"g\", size=2, split_axis=0, concat_axis=1}"), "f32[4,12]");
  EXPECT_EQ(type_of("all_to_all(x) {group=\"g\", size=2, split_axis=-1, concat_axis=1}"), "f32[8,6]");
  EXPECT_EQ(type_of("broadcast_from(x) {group=\"g\", size=4, root=3}"), "f32[8,6]");
  EXPECT_EQ(type_of("reduce_to(x) {group=\"g\", size=4}"), "f32[8,6]");
  EXPECT_EQ(type_of("send(x) {group=\"g\", size=2, peer=1}"), "f32[0]");
  EXPECT_EQ(type_of("recv() {group=\"g\", size=2, peer=1, shape=[3,2], dtype=bf16}"), "bf16[3,2]");
  EXPECT_EQ(type_of("recv(token) {group=\"g\", size=2, peer=0, shape=[]}"), "f32[]");
}

TEST(Collectives, RefuseWhatCannotBeShared) {
  EXPECT_REFUSED("all_reduce(x) {size=4}", "group");
  EXPECT_REFUSED("all_reduce(x) {group=\"\", size=4}", "group must name the workers");
  EXPECT_REFUSED("all_reduce(x) {group=\"g\", size=0}", "size is 0");
  EXPECT_REFUSED("all_gather(x) {group=\"g\", size=2097152}", "at most 1048576");
  EXPECT_REFUSED("all_reduce(mask) {group=\"g\", size=4}", "cast it to i32");
  EXPECT_REFUSED("all_gather(x) {group=\"g\", size=4, axis=2}", "axis 2 is outside");
  EXPECT_REFUSED("reduce_scatter(x) {group=\"g\", size=3}",
                 "axis 0 has extent 8, which 3 workers cannot share evenly; pad it to 9");
  EXPECT_REFUSED("all_to_all(x) {group=\"g\", size=4, split_axis=1}", "split_axis 1 has extent 6");
  EXPECT_REFUSED("broadcast_from(x) {group=\"g\", size=4, root=4}",
                 "root is 4; the workers of group g are 0 to 3");
  EXPECT_REFUSED("send(x) {group=\"g\", size=4, peer=-1}", "peer is -1");
  EXPECT_REFUSED("recv(x) {group=\"g\", size=4, peer=1, shape=[2]}", "must be a token, f32[0]");
}

TEST(Collectives, AreNotInterpreted) {
  RefTensors inputs;
  inputs["x"] = RefTensor({DType::kF32, {8, 6}});
  inputs["mask"] = RefTensor({DType::kBool, {8}});
  inputs["token"] = RefTensor({DType::kF32, {0}});
  EXPECT_THROW(interpret(graph_with("all_reduce(x) {group=\"g\", size=4}"), inputs), UserError);
}

}  // namespace
}  // namespace lockstep
