// matmul(a, b[, c]) {transpose_a, transpose_b, dtype}: a·b, or c + a·b accumulated in place of c.
//
// a is [..., M, K] and b is [..., K, N] with equal leading (batch) axes, or b is [K, N] and the leading axes
// of a join M. The transposes swap the last two axes. Products are summed in fp32; the result has `dtype`
// when given as f32 for 16-bit operands, otherwise the operands' type.
#include "ops/builder.h"

namespace lockstep {
namespace {

struct Dims {
  int64_t m, n, k;
};

Dims dims_of(const Shape& a, const Shape& b, const Attributes& attributes) {
  const bool ta = attributes.flag("transpose_a");
  const bool tb = attributes.flag("transpose_b");
  return {ta ? a[-1] : a[-2], tb ? b[-2] : b[-1], ta ? a[-2] : a[-1]};
}

std::vector<Type> infer(const InferContext& c) {
  const Shape& a = c.shape(0);
  const Shape& b = c.shape(1);
  c.require_floating(0);
  if (c.type(1).dtype != c.type(0).dtype) c.fail("operands have different element types; cast one of them");
  if (a.rank() < 2 || b.rank() < 2)
    c.fail("both operands need at least 2 axes; reshape a vector to [1, n] or [n, 1]");
  if (b.rank() != 2 && b.rank() != a.rank())
    c.fail("operand 1 must have 2 axes or as many as operand 0 ({})", a.rank());
  if (b.rank() == 2 && a.rank() > 2 && c.attributes().flag("transpose_a"))
    c.fail("transpose_a with batch axes needs batch axes on operand 1 too; reshape operand 0 to 2 axes");
  for (int axis = 0; axis + 2 < b.rank(); ++axis)
    if (a[axis] != b[axis])
      c.fail("batch axis {} is {} on one side and {} on the other", axis, a[axis], b[axis]);
  const Dims dims = dims_of(a, b, c.attributes());
  const int64_t k_b = c.attributes().flag("transpose_b") ? b[-1] : b[-2];
  if (dims.k != k_b)
    c.fail(
        "inner extents {} and {} differ; they must be equal (transpose_a or transpose_b swaps the last two "
        "axes)",
        dims.k, k_b);
  std::vector<int64_t> extents(a.begin(), a.end());
  extents[extents.size() - 2] = dims.m;
  extents[extents.size() - 1] = dims.n;
  const std::string& wanted = c.attributes().text("dtype");
  if (!wanted.empty() && wanted != "f32") c.fail("dtype is {}; leave it empty or write \"f32\"", wanted);
  const Type result{wanted.empty() ? c.type(0).dtype : DType::kF32, Shape(extents)};
  if (c.count() == 3 && c.type(2) != result)
    c.fail("operand 2, which is accumulated into, must be {}", to_string(result));
  return {result};
}

// With b of rank 2 the leading axes of a are rows: the gradient of b is one product over all of them.
std::vector<Value> gradient(GradientContext& c) {
  Builder b(c.graph);
  const bool ta = c.attributes().flag("transpose_a");
  const bool tb = c.attributes().flag("transpose_b");
  Value a = c.in(0);
  Value dy = b.cast(c.grad(), c.type(a).dtype);
  const bool flatten = c.type(c.in(1)).shape.rank() == 2 && c.type(a).shape.rank() > 2;
  std::vector<Value> grads(c.node.inputs.size());
  if (c.needed[0]) {
    grads[0] = ta ? b.matmul(c.in(1), dy, tb, true) : b.matmul(dy, c.in(1), false, !tb);
  }
  if (c.needed[1]) {
    if (flatten) {
      const Shape rows = c.type(a).shape;
      a = b.reshape(a, {rows.numel() / rows[-1], rows[-1]});
      const Shape out = c.type(dy).shape;
      dy = b.reshape(dy, {out.numel() / out[-1], out[-1]});
    }
    grads[1] = tb ? b.matmul(dy, a, true, ta) : b.matmul(a, dy, !ta, false);
  }
  if (c.node.inputs.size() == 3) grads[2] = c.grad();
  return grads;
}

void reference(const ReferenceContext& c) {
  const Shape& sa = c.in(0).shape();
  const Shape& sb = c.in(1).shape();
  const bool ta = c.attributes.flag("transpose_a");
  const bool tb = c.attributes.flag("transpose_b");
  const Dims dims = dims_of(sa, sb, c.attributes);
  const int64_t batch = sa.product(0, sa.rank() - 2);
  const bool shared_b = sb.rank() == 2;
  if (c.inputs.size() == 3) c.out().data = c.in(2).data;
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t i = 0; i < dims.m; ++i)
      for (int64_t j = 0; j < dims.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < dims.k; ++k) {
          const double x = c.in(0)[n * dims.m * dims.k + (ta ? k * dims.m + i : i * dims.k + k)];
          const double y =
              c.in(1)[(shared_b ? 0 : n * dims.k * dims.n) + (tb ? j * dims.k + k : k * dims.n + j)];
          sum += x * y;
        }
        c.out()[(n * dims.m + i) * dims.n + j] += sum;
      }
}

// Rows of a split over workers (data parallel), columns of b (column parallel), or the inner axis (row
// parallel, which leaves partial sums); with batch axes, any of those too.
std::vector<ShardingSignature> sharding(const Graph& graph, const Node& node) {
  const int rank_a = graph.type(node.inputs[0]).shape.rank();
  const int rank_b = graph.type(node.inputs[1]).shape.rank();
  const bool ta = node.attributes.flag("transpose_a");
  const bool tb = node.attributes.flag("transpose_b");
  const Placement r = Placement::replicate();
  const auto signature = [&](Placement a, Placement b, Placement out) {
    ShardingSignature s{{a, b}, {out}};
    if (node.inputs.size() == 3) s.inputs.push_back(out);
    return s;
  };
  std::vector<ShardingSignature> result{
      signature(r, r, r),
      signature(Placement::split(ta ? rank_a - 1 : rank_a - 2), r, Placement::split(rank_a - 2)),
      signature(r, Placement::split(tb ? rank_b - 2 : rank_b - 1), Placement::split(rank_a - 1)),
      signature(Placement::split(ta ? rank_a - 2 : rank_a - 1),
                Placement::split(tb ? rank_b - 1 : rank_b - 2), Placement::partial())};
  for (int axis = 0; axis + 2 < rank_a; ++axis)
    result.push_back(
        signature(Placement::split(axis), rank_b == 2 ? r : Placement::split(axis), Placement::split(axis)));
  return result;
}

Cost cost(const Graph& graph, const Node& node) {
  const Shape& a = graph.type(node.inputs[0]).shape;
  const Dims dims = dims_of(a, graph.type(node.inputs[1]).shape, node.attributes);
  const auto outputs = static_cast<double>(graph.type(node.outputs[0]).shape.numel());
  return {2.0 * outputs * static_cast<double>(dims.k), touched_bytes(graph, node)};
}

}  // namespace

OpDef matmul_op() {
  OpDef def{.name = "matmul", .summary = "matrix product, optionally accumulated into a third operand"};
  def.attributes = {{"transpose_a", false, "swap the last two axes of a"},
                    {"transpose_b", false, "swap the last two axes of b"},
                    {"dtype", std::string(), "f32 to keep the fp32 sums of 16-bit operands"}};
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.infer = infer;
  def.gradient = gradient;
  def.reference = reference;
  def.sharding = sharding;
  def.cost = cost;
  def.inplace = {{2, 0}};
  return def;
}

}  // namespace lockstep
