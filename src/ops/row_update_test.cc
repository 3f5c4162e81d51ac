// Wrong row updates are refused with the operand and the fix.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

std::string error_of(const std::string& node) {
  const std::string text =
      "graph t(p: f32[9,4], w: f32[9,5], last: i32[9], short: i32[8], ids: i32[6], dy: f32[6,4], f: f32[6],"
      " lr: f32[], history: f32[10], step: i64[]) {\n  a, b = row_gradient(dy, ids) {rows=9}\n  " +
      node + "\n  return p\n}";
  try {
    parse_graph(text, all_ops());
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

#define EXPECT_REFUSED(node, part) EXPECT_NE(error_of(node).find(part), std::string::npos) << error_of(node)

TEST(RowUpdates, RowGradientWantsOneIdPerRow) {
  EXPECT_REFUSED("r, g = row_gradient(dy, ids)", "rows");
  EXPECT_REFUSED("r, g = row_gradient(dy, f) {rows=9}", "must be i32 or i64");
  EXPECT_REFUSED("r, g = row_gradient(dy, last) {rows=9}", "the shape of ids and one more axis");
}

TEST(RowUpdates, StateHasTheTablesShape) {
  EXPECT_REFUSED("q, m, v, l = adamw_catch_up(p, p, w, last, ids, history, step)", "w: f32[9,5]");
  EXPECT_REFUSED("q, m, v, l = adamw_catch_up(p, p, p, short, ids, history, step)", "last must be i32[9]");
  EXPECT_REFUSED("q, m, v, l = adamw_catch_up(p, p, p, last, ids, lr, step)", "lr_history must be f32[K]");
  EXPECT_REFUSED("q, m, v, l = adamw_rows(p, p, p, last, a, f, lr, lr, step)", "row_grads must be f32[6,4]");
  EXPECT_REFUSED("q, m, v, l = adamw_rows(p, p, p, last, a, b, lr, lr, lr)", "step i64[]");
}

}  // namespace
}  // namespace lockstep
