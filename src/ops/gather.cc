// gather(x, indices) {axis}: slices of x along an axis, chosen by indices of any shape, which takes the
// axis's place. An index outside the axis is an error at run time that names its place.
//
// scatter_add(base, indices, updates) {axis}: base with each slice of updates added to the slice its index
// names, in index order.
#include "ops/builder.h"
#include "ops/row_ids.h"

namespace lockstep {
namespace {

Shape gathered_shape(const InferContext& c, const Shape& x, const Shape& indices) {
  const int axis = c.axis(c.attributes().integer("axis"), x.rank());
  if (x.rank() - 1 + indices.rank() > Shape::kMaxRank)
    c.fail("the result would have more than {} axes", Shape::kMaxRank + 0);
  std::vector<int64_t> extents(x.begin(), x.begin() + axis);
  extents.insert(extents.end(), indices.begin(), indices.end());
  extents.insert(extents.end(), x.begin() + axis + 1, x.end());
  return Shape(extents);
}

std::vector<Type> infer_gather(const InferContext& c) {
  const Shape result = gathered_shape(c, c.shape(0), c.shape(1));
  require_ids(c, 1, c.shape(0)[row_axis(c.shape(0), c.attributes())]);
  return {{c.type(0).dtype, result}};
}

std::vector<Type> infer_scatter(const InferContext& c) {
  c.require_floating(0);
  const Type updates{c.type(0).dtype, gathered_shape(c, c.shape(0), c.shape(1))};
  require_ids(c, 1, c.shape(0)[row_axis(c.shape(0), c.attributes())]);
  if (c.type(2) != updates) c.fail("updates (operand 2) must be {}", to_string(updates));
  return {c.type(0)};
}

// Calls body(element of x, element of the gathered tensor) in index order.
template <typename Body>
void for_each_gathered(std::string_view op, const Shape& x, const RefTensor& indices,
                       const Attributes& attributes, const Body& body) {
  const RowView view = rows_along(x, row_axis(x, attributes));
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < indices.numel(); ++i) {
      const int64_t id = checked_id(op, indices, i, view.rows);
      for (int64_t j = 0; j < view.inner; ++j)
        body((o * view.rows + id) * view.inner + j, (o * indices.numel() + i) * view.inner + j);
    }
}

// Placements of (x, indices, gathered): along axes of x that stay, all three follow; along an axis of
// indices, only they and the gathered tensor.
struct Split {
  Placement x, indices, gathered;
};

std::vector<Split> splits(const Shape& x, const Shape& indices, const Attributes& attributes) {
  const Placement r = Placement::replicate();
  const int axis = row_axis(x, attributes);
  std::vector<Split> result{{r, r, r}};
  for (int a = 0; a < x.rank(); ++a)
    if (a != axis)
      result.push_back({Placement::split(a), r, Placement::split(a < axis ? a : a + indices.rank() - 1)});
  return result;
}

}  // namespace

OpDef gather_op() {
  OpDef def{.name = "gather", .summary = "slices along an axis by index"};
  def.attributes = {{"axis", int64_t{0}, "the axis that indices count along"}};
  def.min_inputs = def.max_inputs = 2;
  def.traits = {.recompute_cheap = true};
  def.infer = infer_gather;
  def.gradient = [](GradientContext& c) {
    const Value zeros = Builder(c.graph).constant(0.0, c.type(c.in(0)));
    return std::vector<Value>{c.graph.emit("scatter_add", {zeros, c.in(1), c.grad()}, c.attributes()),
                              Value{}};
  };
  def.reference = [](const ReferenceContext& c) {
    for_each_gathered("gather", c.in(0).shape(), c.in(1), c.attributes,
                      [&](int64_t x, int64_t gathered) { c.out()[gathered] = c.in(0)[x]; });
  };
  def.sharding = [](const Graph& graph, const Node& node) {
    const Shape& x = graph.type(node.inputs[0]).shape;
    const Shape& indices = graph.type(node.inputs[1]).shape;
    std::vector<ShardingSignature> result;
    for (const Split& s : splits(x, indices, node.attributes))
      result.push_back({{s.x, s.indices}, {s.gathered}});
    for (int a = 0; a < indices.rank(); ++a)
      result.push_back({{Placement::replicate(), Placement::split(a)},
                        {Placement::split(row_axis(x, node.attributes) + a)}});
    return result;
  };
  def.cost = [](const Graph& graph, const Node& node) {
    const auto moved = 2 * graph.type(node.outputs[0]).bytes() + graph.type(node.inputs[1]).bytes();
    return Cost{0, static_cast<double>(moved)};
  };
  return def;
}

OpDef scatter_add_op() {
  OpDef def{.name = "scatter_add", .summary = "adds slices at indices along an axis, in index order"};
  def.attributes = {{"axis", int64_t{0}, "the axis that indices count along"}};
  def.min_inputs = def.max_inputs = 3;
  def.traits = {.reduction = true};
  def.infer = infer_scatter;
  def.gradient = [](GradientContext& c) {
    std::vector<Value> grads{c.grad(), Value{}, Value{}};
    if (c.needed[2]) grads[2] = c.graph.emit("gather", {c.grad(), c.in(1)}, c.attributes());
    return grads;
  };
  def.reference = [](const ReferenceContext& c) {
    c.out().data = c.in(0).data;
    for_each_gathered("scatter_add", c.in(0).shape(), c.in(1), c.attributes,
                      [&](int64_t x, int64_t gathered) { c.out()[x] += c.in(2)[gathered]; });
  };
  def.sharding = [](const Graph& graph, const Node& node) {
    std::vector<ShardingSignature> result;
    for (const Split& s :
         splits(graph.type(node.inputs[0]).shape, graph.type(node.inputs[1]).shape, node.attributes))
      result.push_back({{s.x, s.indices, s.gathered}, {s.x}});
    return result;
  };
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{static_cast<double>(graph.type(node.inputs[2]).shape.numel()), touched_bytes(graph, node)};
  };
  def.inplace = {{0, 0}};
  return def;
}

}  // namespace lockstep
