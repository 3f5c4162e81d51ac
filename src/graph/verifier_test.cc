#include "graph/verifier.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text.h"
#include "graph/toy_ops.h"

namespace lockstep::testing {
namespace {

std::string complaint(const Graph& graph, Stage stage = Stage::kImported) {
  try {
    verify(graph, stage);
    return "";
  } catch (const InternalError& error) {
    return error.what();
  }
}

TEST(Verifier, AcceptsWhatTheBuilderMakes) {
  EXPECT_EQ(
      complaint(parse_graph("graph g(x: f32[2] @param) { a, b = twice(x)  c = join(a, b)  return c, x <- c }",
                            toy_ops())),
      "");
}

TEST(Verifier, KnowsTheStageAnOpBelongsTo) {
  const Graph graph = parse_graph("graph g(x: f32[2]) { a = late(x)  return a }", toy_ops());
  EXPECT_NE(complaint(graph, Stage::kFused).find("late belongs to stage scheduled, the graph is fused"),
            std::string::npos);
  EXPECT_EQ(complaint(graph, Stage::kScheduled), "");
}

TEST(Verifier, OnlyInputsAreWritten) {
  Graph graph = parse_graph("graph g(x: f32[2]) { a = tuned(x)  return a }", toy_ops());
  graph.add_update(graph.find("a"), graph.find("a"));
  EXPECT_NE(complaint(graph).find("a is written but is no input"), std::string::npos);
}

TEST(Verifier, AnInputIsWrittenOnceAndWithItsOwnType) {
  Graph graph = parse_graph("graph g(x: f32[2], y: f32[3]) { a = tuned(x)  return x <- a }", toy_ops());
  Graph other = graph;
  graph.add_update(graph.find("x"), graph.find("a"));
  EXPECT_NE(complaint(graph).find("x is written twice"), std::string::npos);
  other.add_update(other.find("y"), other.find("a"));
  EXPECT_NE(complaint(other).find("y is written with another type"), std::string::npos);
}

TEST(Verifier, StatisticsAreWritten) {
  Graph graph = parse_graph("graph g(x: f32[2]) { a = tuned(x)  return a }", toy_ops());
  const Value statistic = graph.add_input("s", {DType::kF32, {2}}, Role::kStatistic);
  EXPECT_NE(complaint(graph).find("statistic s is not written"), std::string::npos);
  graph.add_update(statistic, graph.find("a"));
  EXPECT_EQ(complaint(graph), "");
}

}  // namespace
}  // namespace lockstep::testing
