// adamw_catch_up(p, m, v, last, ids, lr_history, step): brings the rows named in ids to their state after
// step - 1.
//
// A row takes the steps last + 1 to step - 1 of AdamW with a gradient of zero; step t has the learning rate
// lr_history[t % K]. With `all`, or without ids, every row is caught up. Ids of -1 are padding. A row that
// missed more than K steps is an error: catch all rows up at least every K steps.
#include "ops/row_ids.h"
#include "ops/row_update.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  std::vector<Type> types = infer_row_state(c);
  require_ids(c, 4, c.shape(0)[0]);
  if (c.type(5).dtype != DType::kF32 || c.shape(5).rank() != 1 || c.shape(5)[0] < 1)
    c.fail("lr_history must be f32[K] with K at least 1");
  if (c.type(6) != Type{DType::kI64, {}}) c.fail("the last operand must be step i64[]");
  return types;
}

void catch_up_row(const ReferenceContext& c, int64_t row) {
  const ReferenceAdamw adamw(c.attributes);
  const auto now = static_cast<int64_t>(c.in(6).scalar()) - 1;
  const int64_t capacity = c.in(5).numel();
  for (auto t = static_cast<int64_t>(c.out(3)[row]) + 1; t <= now; ++t)
    adamw.step(c, row, t, c.in(5)[t % capacity], [](int64_t) { return 0.0; });
  c.out(3)[row] = static_cast<double>(now);
}

void reference(const ReferenceContext& c) {
  copy_row_state(c);
  const int64_t rows = c.in(3).numel();
  if (c.attributes.flag("all") || c.in(4).numel() == 0) {
    for (int64_t row = 0; row < rows; ++row) catch_up_row(c, row);
    return;
  }
  for (int64_t i = 0; i < c.in(4).numel(); ++i)
    if (c.in(4)[i] != -1.0) catch_up_row(c, checked_id("adamw_catch_up", c.in(4), i, rows));
}

}  // namespace

OpDef adamw_catch_up_op() {
  OpDef def{.name = "adamw_catch_up", .summary = "AdamW steps that rows of a table missed, replayed"};
  def.attributes = adamw_attributes();
  def.attributes.push_back({"all", false, "every row of the table, whatever ids says"});
  def.min_inputs = def.max_inputs = 7;
  def.infer = infer;
  def.reference = reference;
  def.sharding = [](const Graph&, const Node&) {
    return std::vector<ShardingSignature>{{std::vector<Placement>(7), std::vector<Placement>(4)}};
  };
  // How many steps a row missed is not known here: one is counted.
  def.cost = [](const Graph& graph, const Node& node) {
    const Shape& table = graph.type(node.inputs[0]).shape;
    const int64_t ids = graph.type(node.inputs[4]).shape.numel();
    const int64_t rows = node.attributes.flag("all") || ids == 0 ? table[0] : ids;
    const auto elements = static_cast<double>(rows * table[1]);
    return Cost{8.0 * elements, 6.0 * sizeof(float) * elements};
  };
  def.inplace = row_state_inplace();
  return def;
}

}  // namespace lockstep
