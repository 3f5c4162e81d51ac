// embedding_bag(table, ids) {mode, ignore}: for each row of ids [B,L], the sum or mean of the table's rows
// [V,C] it names, in order, giving [B,C]. Ids equal to `ignore` are padding: they add nothing and do not
// count for the mean; a bag of padding alone is zero. Another id outside [0, V) is an error at run time that
// names its place.
//
// embedding_bag_grad(dy, ids) {rows, mode, ignore}: the table's gradient [rows, C], summed in index order.
#include "ops/row_ids.h"

namespace lockstep {
namespace {

std::vector<AttributeDef> attributes() {
  return {{"mode", std::string("sum"), "sum or mean"}, {"ignore", int64_t{-1}, "the id that pads a bag"}};
}

void check(const InferContext& c, int64_t rows) {
  require_ids(c, 1, rows);
  if (c.shape(1).rank() != 2) c.fail("ids must be [B,L]: one bag per row, padded with `ignore`");
  const std::string& mode = c.attributes().text("mode");
  if (mode != "sum" && mode != "mean") c.fail("mode is \"{}\"; write sum or mean", mode);
}

std::vector<Type> infer(const InferContext& c) {
  c.require_floating(0);
  if (c.shape(0).rank() != 2) c.fail("the table must be [V,C], it has {} axes", c.shape(0).rank());
  check(c, c.shape(0)[0]);
  return {{c.type(0).dtype, {c.shape(1)[0], c.shape(0)[1]}}};
}

std::vector<Type> infer_grad(const InferContext& c) {
  c.require_floating(0);
  const int64_t rows = c.attributes().integer("rows");
  if (rows < 1) c.fail("rows is {}; it is the number of rows of the table", rows);
  check(c, rows);
  if (c.shape(0).rank() != 2 || c.shape(0)[0] != c.shape(1)[0])
    c.fail("operand 0 must be [B,C] for ids of [B,L]");
  return {{c.type(0).dtype, {rows, c.shape(0)[1]}}};
}

std::vector<Value> gradient(GradientContext& c) {
  Attributes attributes = c.attributes();
  attributes.set("rows", c.type(c.in(0)).shape[0]);
  return {c.graph.emit("embedding_bag_grad", {c.grad(), c.in(1)}, attributes), Value{}};
}

// Calls body(bag, id, factor) for every id that is not padding, in order.
template <typename Body>
void for_each_id(const ReferenceContext& c, std::string_view op, int64_t rows, const Body& body) {
  const RefTensor& ids = c.in(1);
  const int64_t bags = ids.shape()[0];
  const int64_t length = ids.shape()[1];
  const auto ignore = static_cast<double>(c.attributes.integer("ignore"));
  for (int64_t bag = 0; bag < bags; ++bag) {
    int64_t count = 0;
    for (int64_t i = bag * length; i < (bag + 1) * length; ++i) count += ids[i] != ignore ? 1 : 0;
    const double factor =
        c.attributes.text("mode") == "mean" && count > 0 ? 1.0 / static_cast<double>(count) : 1.0;
    for (int64_t i = bag * length; i < (bag + 1) * length; ++i)
      if (ids[i] != ignore) body(bag, checked_id(op, ids, i, rows), factor);
  }
}

void reference(const ReferenceContext& c) {
  const int64_t width = c.out().shape()[1];
  for_each_id(c, "embedding_bag", c.in(0).shape()[0], [&](int64_t bag, int64_t id, double factor) {
    for (int64_t j = 0; j < width; ++j) c.out()[bag * width + j] += factor * c.in(0)[id * width + j];
  });
}

void reference_grad(const ReferenceContext& c) {
  const int64_t width = c.out().shape()[1];
  for_each_id(c, "embedding_bag_grad", c.out().shape()[0], [&](int64_t bag, int64_t id, double factor) {
    for (int64_t j = 0; j < width; ++j) c.out()[id * width + j] += factor * c.in(0)[bag * width + j];
  });
}

}  // namespace

OpDef embedding_bag_op() {
  OpDef def{.name = "embedding_bag", .summary = "sum or mean of a table's rows per bag of ids"};
  def.attributes = attributes();
  def.min_inputs = def.max_inputs = 2;
  def.traits = {.reduction = true, .recompute_cheap = true};
  def.infer = infer;
  def.gradient = gradient;
  def.reference = reference;
  def.sharding = [](const Graph&, const Node&) {
    const Placement r = Placement::replicate();
    return std::vector<ShardingSignature>{{{r, r}, {r}},
                                          {{r, Placement::split(0)}, {Placement::split(0)}},
                                          {{Placement::split(1), r}, {Placement::split(1)}}};
  };
  def.cost = [](const Graph& graph, const Node& node) {
    const Type& ids = graph.type(node.inputs[1]);
    const Type& out = graph.type(node.outputs[0]);
    const int64_t rows_read = ids.shape.numel() * out.shape[1] * size_of(out.dtype);
    return Cost{static_cast<double>(ids.shape.numel() * out.shape[1]),
                static_cast<double>(rows_read + out.bytes() + ids.bytes())};
  };
  return def;
}

OpDef embedding_bag_grad_op() {
  OpDef def{.name = "embedding_bag_grad", .summary = "gradient of a table of bags, summed in index order"};
  def.attributes = attributes();
  def.attributes.push_back({"rows", int64_t{0}, "rows of the table", true});
  def.min_inputs = def.max_inputs = 2;
  def.traits = {.reduction = true};
  def.infer = infer_grad;
  def.reference = reference_grad;
  def.sharding = [](const Graph&, const Node&) {
    const Placement r = Placement::replicate();
    return std::vector<ShardingSignature>{
        {{r, r}, {r}},
        {{Placement::split(0), Placement::split(0)}, {Placement::partial()}},
        {{Placement::split(1), r}, {Placement::split(1)}}};
  };
  def.cost = [](const Graph& graph, const Node& node) {
    const Shape& out = graph.type(node.outputs[0]).shape;
    return Cost{static_cast<double>(graph.type(node.inputs[1]).shape.numel() * out[1]),
                touched_bytes(graph, node)};
  };
  return def;
}

}  // namespace lockstep
