// Ids outside a table end in an error that names the first of them, whichever thread met which.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "base/error.h"
#include "graph/text.h"
#include "ops/registry.h"

namespace lockstep::cpu {
namespace {

std::string error_of(const std::string& statement, const std::string& inputs, std::vector<void*> data,
                     void* result) {
  const Graph graph =
      parse_graph("graph t(" + inputs + ") {\n  y = " + statement + "\n  return y\n}\n", all_ops(), "t");
  const auto backend = make_cpu_backend(3);
  const KernelChoice choice = backend->choose(graph, graph.nodes()[0]);
  std::vector<char> workspace(static_cast<size_t>(choice.kernel->workspace_bytes()) + 64);
  std::vector<void*> results{result};
  try {
    choice.kernel->run({data, results, workspace.data()});
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Tables, AnIdOutsideTheTableIsNamed) {
  std::vector<float> table(64 * 8), out(4096 * 8);
  std::vector<int32_t> ids(4096, 1);
  ids[4090] = -7;
  EXPECT_EQ(error_of("embedding(t, tokens)", "t: f32[64,8], tokens: i32[2,2048]", {table.data(), ids.data()},
                     out.data()),
            "embedding: tokens[1,2042] is -7, outside the table's rows [0, 64)");
  ids[100] = 64;
  EXPECT_EQ(error_of("embedding(t, tokens)", "t: f32[64,8], tokens: i32[2,2048]", {table.data(), ids.data()},
                     out.data()),
            "embedding: tokens[0,100] is 64, outside the table's rows [0, 64)");
}

TEST(Tables, APaddingIdIsNoError) {
  std::vector<float> table{1, 2, 3, 4}, out(2);
  std::vector<int64_t> ids{-1, 1, -1};
  EXPECT_EQ(
      error_of("embedding_bag(t, i)", "t: f32[2,2], i: i64[1,3]", {table.data(), ids.data()}, out.data()),
      "");
  EXPECT_EQ(out, (std::vector<float>{3, 4}));
  ids[2] = 2;
  EXPECT_EQ(
      error_of("embedding_bag(t, i)", "t: f32[2,2], i: i64[1,3]", {table.data(), ids.data()}, out.data()),
      "embedding_bag: i[0,2] is 2, outside the table's rows [0, 2)");
}

TEST(Tables, ScatterAddLeavesOutNothing) {
  std::vector<float> base{1, 2}, updates{5}, out(2);
  std::vector<int32_t> ids{-1};
  EXPECT_EQ(error_of("scatter_add(b, i, u)", "b: f32[2,1], i: i32[1], u: f32[1,1]",
                     {base.data(), ids.data(), updates.data()}, out.data()),
            "scatter_add: i[0] is -1, outside the table's rows [0, 2)");
}

}  // namespace
}  // namespace lockstep::cpu
