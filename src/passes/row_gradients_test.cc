#include "passes/row_gradients.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "ops/registry.h"
#include "passes/autodiff.h"

namespace lockstep {
namespace {

Graph backward(const char* forward) { return differentiate(parse_graph(forward, all_ops())); }

TEST(RowGradients, AFewRowsOfALargeTableStayRows) {
  const Graph graph = backward(
      "graph t(table: f32[1000,4] @param, ids: i32[5]) {\n  x = embedding(table, ids)\n  loss = sum(x)\n  "
      "return loss\n}\n");
  const auto tables = row_tables(graph);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].name, "table");
  EXPECT_EQ(tables[0].ids_input, "ids");
  const Graph rows = make_row_gradients(graph, {});
  EXPECT_FALSE(rows.find("grad.table").valid());
  EXPECT_EQ(to_string(rows.type(rows.find("grad.table.ids"))), "i32[5]");
  EXPECT_EQ(to_string(rows.type(rows.find("grad.table.rows"))), "f32[5,4]");
}

TEST(RowGradients, SmallOrSharedTablesStayDense) {
  EXPECT_TRUE(
      row_tables(backward("graph t(table: f32[20,4] @param, ids: i32[5]) {\n  x = embedding(table, ids)\n"
                          "  loss = sum(x)\n  return loss\n}\n"))
          .empty());
  // The tied head reads every row, so no row may be out of date.
  EXPECT_TRUE(
      row_tables(backward("graph t(table: f32[1000,4] @param, ids: i32[5]) {\n  x = embedding(table, ids)\n"
                          "  y = matmul(x, table) {transpose_b=true}\n  loss = sum(y)\n  return loss\n}\n"))
          .empty());
}

TEST(RowGradients, ATableBesideLargerWeightsStaysDense) {
  const auto text = [](int width) {
    return fmt::format(
        "graph t(table: f32[1000,4] @param, w: f32[4,{}] @param, ids: i32[5]) {{\n  x = embedding(table, "
        "ids)\n"
        "  y = matmul(x, w)\n  loss = sum(y)\n  return loss\n}}\n",
        width);
  };
  EXPECT_EQ(row_tables(backward(text(1000).c_str())).size(), 1U);
  EXPECT_TRUE(row_tables(backward(text(1001).c_str())).empty());
  EXPECT_TRUE(make_row_gradients(backward(text(1001).c_str()), {}).find("grad.table").valid());
}

}  // namespace
}  // namespace lockstep
