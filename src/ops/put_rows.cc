// put_rows(base, slots, rows): base [B,S,...] in which row slots[t] of every b is row t of rows [B,T,...]. A
// negative slot leaves its row out; the others must differ.
//
// The keys and values of tokens enter a cache this way: base is then a @state input, and the result is
// written in its place.
#include "ops/builder.h"
#include "ops/row_ids.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  c.require_floating(0);
  const Shape& base = c.shape(0);
  if (base.rank() < 2) c.fail("base (operand 0) must be [B,S,...]");
  if (c.type(1).dtype != DType::kI32 || c.shape(1).rank() != 1) c.fail("slots (operand 1) must be i32[T]");
  const Type rows{c.type(0).dtype, base.with(1, c.shape(1)[0])};
  if (c.type(2) != rows) c.fail("rows (operand 2) must be {}", to_string(rows));
  return {c.type(0)};
}

void reference(const ReferenceContext& c) {
  const RefTensor& slots = c.in(1);
  const RowView view = rows_along(c.in(0).shape(), 1);
  c.out().data = c.in(0).data;
  for (int64_t b = 0; b < view.outer; ++b)
    for (int64_t t = 0; t < slots.numel(); ++t) {
      if (slots[t] < 0) continue;
      const int64_t slot = checked_id("put_rows", slots, t, view.rows);
      for (int64_t j = 0; j < view.inner; ++j)
        c.out()[(b * view.rows + slot) * view.inner + j] = c.in(2)[(b * slots.numel() + t) * view.inner + j];
    }
}

// A product with the matrix [S,T] that has a 1 where a row goes to a slot, added to what stays of the base.
std::vector<Value> decompose(Graph& graph, const Node& /*node*/, std::span<const Value> inputs) {
  Builder b(graph);
  const Type type = graph.type(inputs[0]);
  const RowView view = rows_along(type.shape, 1);
  const int64_t count = b.shape(inputs[1])[0];
  const std::vector<int64_t> pairs{view.rows, count};
  const Value index = b.op("iota", {}, {{"shape", pairs}, {"axis", int64_t{0}}, {"dtype", DType::kI32}});
  const Value goes = b.indicator("eq", index, b.reshape(inputs[1], {1, count}));
  const Value stays = b.shift(b.neg(b.sum(goes, {1}, true)), 1);  // [S,1]
  const auto flat = [&](Value x, int64_t rows) {
    return b.reshape(b.cast(x, DType::kF32), {view.outer, rows, view.inner});
  };
  const Value placed =
      b.matmul(b.broadcast(b.reshape(goes, {1, view.rows, count}), {view.outer, view.rows, count}),
               flat(inputs[2], count));
  const Value kept = b.mul(flat(inputs[0], view.rows), b.reshape(stays, {1, view.rows, 1}));
  return {b.cast(b.reshape(b.add(kept, placed), type.shape), type.dtype)};
}

std::vector<ShardingSignature> sharding(const Graph& graph, const Node& node) {
  const Placement r = Placement::replicate();
  std::vector<ShardingSignature> result{{{r, r, r}, {r}}};
  for (int axis = 0; axis < graph.type(node.inputs[0]).shape.rank(); ++axis) {
    const Placement s = Placement::split(axis);
    if (axis != 1) result.push_back({{s, r, s}, {s}});
  }
  return result;
}

}  // namespace

OpDef put_rows_op() {
  OpDef def{.name = "put_rows", .summary = "rows put into the slots of a cache"};
  def.min_inputs = def.max_inputs = 3;
  def.infer = infer;
  def.reference = reference;
  def.decompose = decompose;
  def.sharding = sharding;
  // Only the rows are moved: the base is the caller's buffer.
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{0, 2.0 * static_cast<double>(graph.type(node.inputs[2]).bytes())};
  };
  def.inplace = {{0, 0}};
  return def;
}

}  // namespace lockstep
