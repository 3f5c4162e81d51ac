// adamw_rows(p, m, v, last, row_ids, row_grads, scale, lr, step): one step of AdamW on the rows that got a
// gradient.
//
// row_ids and row_grads come from row_gradient: rising ids, then -1. The rows must have been caught up to
// step - 1 (adamw_catch_up); afterwards their `last` is step.
#include "ops/optimizer.h"
#include "ops/row_ids.h"
#include "ops/row_update.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  std::vector<Type> types = infer_row_state(c);
  if (c.type(4).dtype != DType::kI32 || c.shape(4).rank() != 1)
    c.fail("row_ids must be i32[n], from row_gradient");
  const Type gradients{DType::kF32, {c.shape(4)[0], c.shape(0)[1]}};
  if (c.type(5) != gradients) c.fail("row_grads must be {}: a row of the table per id", to_string(gradients));
  require_step_scalars(c);
  return types;
}

void reference(const ReferenceContext& c) {
  const ReferenceAdamw adamw(c.attributes);
  const auto [scale, lr, t] = ReferenceStep(c);
  const int64_t columns = c.in(0).type.shape[1];
  copy_row_state(c);
  for (int64_t i = 0; i < c.in(4).numel(); ++i) {
    if (c.in(4)[i] == -1.0) continue;
    const int64_t row = checked_id("adamw_rows", c.in(4), i, c.in(3).numel());
    adamw.step(c, row, static_cast<int64_t>(t), lr,
               [&, scale = scale](int64_t k) { return c.in(5)[i * columns + k] * scale; });
    c.out(3)[row] = t;
  }
}

}  // namespace

OpDef adamw_rows_op() {
  OpDef def{.name = "adamw_rows", .summary = "AdamW on the rows of a table that got a gradient"};
  def.attributes = adamw_attributes();
  def.min_inputs = def.max_inputs = 9;
  def.infer = infer;
  def.reference = reference;
  def.sharding = [](const Graph&, const Node&) {
    return std::vector<ShardingSignature>{{std::vector<Placement>(9), std::vector<Placement>(4)}};
  };
  def.cost = [](const Graph& graph, const Node& node) {
    const auto elements = static_cast<double>(graph.type(node.inputs[5]).shape.numel());
    return Cost{12.0 * elements, 7.0 * sizeof(float) * elements};
  };
  def.inplace = row_state_inplace();
  return def;
}

}  // namespace lockstep
