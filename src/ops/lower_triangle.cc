// lower_triangle(x): what lies strictly below the diagonal of [..., N, N], row by row, as [..., N(N-1)/2]:
// every pair of N feature vectors once, out of the matrix of their products.
//
// lower_triangle_grad(dy) {size}: the inverse, with zeros on and above the diagonal.
#include "ops/builder.h"

namespace lockstep {
namespace {

int64_t pairs(int64_t n) { return n * (n - 1) / 2; }

Shape with_tail(const Shape& shape, int dropped, std::initializer_list<int64_t> tail) {
  std::vector<int64_t> extents(shape.begin(), shape.end() - dropped);
  extents.insert(extents.end(), tail);
  return Shape(extents);
}

// Calls body(place in the square, place in the triangle) for every pair of every matrix.
template <typename Body>
void for_each_pair(int64_t matrices, int64_t n, const Body& body) {
  for (int64_t m = 0; m < matrices; ++m)
    for (int64_t row = 1; row < n; ++row)
      for (int64_t column = 0; column < row; ++column)
        body(m * n * n + row * n + column, m * pairs(n) + pairs(row) + column);
}

std::vector<Type> infer(const InferContext& c) {
  const Shape& x = c.shape(0);
  if (x.rank() < 2 || x[-1] != x[-2])
    c.fail("the last two axes must be equal; the operand is {}", to_string(x));
  return {{c.type(0).dtype, with_tail(x, 2, {pairs(x[-1])})}};
}

std::vector<Type> infer_grad(const InferContext& c) {
  const int64_t n = c.attributes().integer("size");
  if (n < 0 || n > 1 << 20 || c.shape(0).rank() < 1 || c.shape(0)[-1] != pairs(n))
    c.fail("the last axis must have size(size-1)/2 elements for size {}", n);
  return {{c.type(0).dtype, with_tail(c.shape(0), 1, {n, n})}};
}

std::vector<Value> decompose(Graph& graph, const Node&, std::span<const Value> inputs) {
  Builder b(graph);
  const Shape shape = b.shape(inputs[0]);
  const int rows = shape.rank() - 2;
  std::vector<Value> pieces;
  for (int64_t row = 1; row < shape[-1]; ++row) {
    const Value below = b.slice(b.slice(inputs[0], rows, row, row + 1), rows + 1, 0, row);
    pieces.push_back(b.reshape(below, with_tail(shape, 2, {row})));
  }
  if (pieces.empty()) return {b.constant(0, {b.type(inputs[0]).dtype, with_tail(shape, 2, {0})})};
  if (pieces.size() == 1) return pieces;
  return graph.emit_all("concat", pieces, {{"axis", int64_t{rows}}});
}

std::vector<Value> decompose_grad(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const Type type = b.type(inputs[0]);
  const int64_t n = node.attributes.integer("size");
  const int rows = type.shape.rank() - 1;
  const Shape square = with_tail(type.shape, 1, {n, n});
  if (n < 2) return {b.constant(0, {type.dtype, square})};
  std::vector<Value> pieces{b.constant(0, {type.dtype, square.with(rows, 1)})};
  for (int64_t row = 1; row < n; ++row) {
    const Value below = b.slice(inputs[0], rows, pairs(row), pairs(row) + row);
    const Value zeros = b.constant(0, {type.dtype, with_tail(type.shape, 1, {n - row})});
    pieces.push_back(b.reshape(b.concat({below, zeros}, rows), square.with(rows, 1)));
  }
  return graph.emit_all("concat", pieces, {{"axis", int64_t{rows}}});
}

std::vector<ShardingSignature> sharding(const Graph& graph, const Node& node) {
  std::vector<ShardingSignature> result{{{Placement::replicate()}, {Placement::replicate()}}};
  const int leading = graph.type(node.inputs[0]).shape.rank() - (node.op->name == "lower_triangle" ? 2 : 1);
  for (int axis = 0; axis < leading; ++axis)
    result.push_back({{Placement::split(axis)}, {Placement::split(axis)}});
  return result;
}

}  // namespace

OpDef lower_triangle_op() {
  OpDef def{.name = "lower_triangle", .summary = "what lies below the diagonal of square matrices"};
  def.infer = infer;
  def.gradient = [](GradientContext& c) {
    const int64_t n = c.type(c.in(0)).shape[-1];
    return std::vector<Value>{c.graph.emit("lower_triangle_grad", {c.grad()}, {{"size", n}})};
  };
  def.reference = [](const ReferenceContext& c) {
    const Shape& x = c.in(0).shape();
    for_each_pair(x.product(0, x.rank() - 2), x[-1],
                  [&](int64_t square, int64_t triangle) { c.out()[triangle] = c.in(0)[square]; });
  };
  def.decompose = decompose;
  def.sharding = sharding;
  return def;
}

OpDef lower_triangle_grad_op() {
  OpDef def{.name = "lower_triangle_grad", .summary = "square matrices from what lies below their diagonal"};
  def.attributes = {{"size", int64_t{0}, "extent of the matrices", true}};
  def.infer = infer_grad;
  def.gradient = [](GradientContext& c) {
    return std::vector<Value>{c.graph.emit("lower_triangle", {c.grad()})};
  };
  def.reference = [](const ReferenceContext& c) {
    const Shape& out = c.out().shape();
    for_each_pair(out.product(0, out.rank() - 2), out[-1],
                  [&](int64_t square, int64_t triangle) { c.out()[square] = c.in(0)[triangle]; });
  };
  def.decompose = decompose_grad;
  def.sharding = sharding;
  return def;
}

}  // namespace lockstep
