// The gradients of layer_norm and rms_norm.
//
// With g = dy * weight and h the normalised x: dx = rstd * (g - mean(g) - h * mean(g * h)), without mean(g)
// when not centered. In a pre-norm transformer dx always joins the gradient of the residual stream, hence the
// optional last operand: the result is residual + dx, with dx rounded first, so that fusing the addition does
// not change a bit.
#include "ops/builder.h"
#include "ops/row_norm.h"
#include "ops/shard_rows.h"

namespace lockstep {
namespace {

template <bool kCentered>
std::vector<Type> infer(const InferContext& c) {
  check_row_norm(c, 1, 2, false);
  c.require_same_type(0, 1);
  const int rstd = kCentered ? 4 : 3;
  for (int operand = 3; operand <= rstd; ++operand)
    if (c.type(operand) != row_statistic(c.type(1)))
      c.fail("operand {} must be {}, a statistic of the forward op", operand,
             to_string(row_statistic(c.type(1))));
  if (c.count() == rstd + 2) c.require_same_type(rstd + 1, 1);
  if (kCentered) return {c.type(1), c.type(2), c.type(2)};
  return {c.type(1), c.type(2)};
}

template <bool kCentered>
void reference(const ReferenceContext& c) {
  const RefTensor& dy = c.in(0);
  const RefTensor& x = c.in(1);
  const RefTensor& weight = c.in(2);
  const RefTensor& all_rstd = c.in(kCentered ? 4 : 3);
  const size_t residual = kCentered ? 5 : 4;
  const int64_t cols = x.shape()[-1];
  const auto count = static_cast<double>(cols);
  for (int64_t r = 0; r < x.numel() / cols; ++r) {
    const int64_t row = r * cols;
    const double mean = kCentered ? c.in(3)[r] : 0.0;
    const double rstd = all_rstd[r];
    double mean_g = 0;
    double mean_gh = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const double h = (x[row + i] - mean) * rstd;
      const double g = dy[row + i] * weight[i];
      if (kCentered) mean_g += g / count;
      mean_gh += g * h / count;
      c.out(1)[i] += dy[row + i] * h;
      if (kCentered) c.out(2)[i] += dy[row + i];
    }
    for (int64_t i = 0; i < cols; ++i) {
      const double h = (x[row + i] - mean) * rstd;
      c.out()[row + i] = rstd * (dy[row + i] * weight[i] - mean_g - h * mean_gh);
      if (c.inputs.size() > residual) c.out()[row + i] += c.in(static_cast<int>(residual))[row + i];
    }
  }
}

template <bool kCentered>
std::vector<Value> decompose(Graph& graph, const Node&, std::span<const Value> inputs) {
  Builder b(graph);
  const Type type = b.type(inputs[1]);
  const int rank = type.shape.rank();
  const auto column = [&](Value statistic) {
    std::vector<int64_t> extents(type.shape.begin(), type.shape.end());
    extents.back() = 1;
    return b.reshape(statistic, Shape(extents));
  };
  const Value dy = b.cast(inputs[0], DType::kF32), weight = b.cast(inputs[2], DType::kF32);
  const Value rstd = column(inputs[kCentered ? 4 : 3]);
  Value h = b.cast(inputs[1], DType::kF32);
  if (kCentered) h = b.sub(h, column(inputs[3]));
  h = b.mul(h, rstd);
  const Value g = b.mul(dy, weight);
  Value inner = b.sub(g, b.mul(h, b.mean(b.mul(g, h), {-1}, true)));
  if (kCentered) inner = b.sub(inner, b.mean(g, {-1}, true));
  Value dx = b.cast(b.mul(inner, rstd), type.dtype);
  if (const size_t residual = kCentered ? 5 : 4; inputs.size() > residual) dx = b.add(dx, inputs[residual]);
  std::vector<int64_t> rows;
  for (int axis = 0; axis + 1 < rank; ++axis) rows.push_back(axis);
  const DType stored = b.type(inputs[2]).dtype;
  std::vector<Value> results{dx, b.cast(b.sum(b.mul(dy, h), rows), stored)};
  if (kCentered) results.push_back(b.cast(b.sum(dy, rows), stored));
  return results;
}

template <bool kCentered>
OpDef make() {
  OpDef def;
  def.min_inputs = kCentered ? 5 : 4;
  def.max_inputs = def.min_inputs + 1;
  def.traits = {.reduction = true};
  def.infer = infer<kCentered>;
  def.reference = reference<kCentered>;
  def.decompose = decompose<kCentered>;
  def.sharding = [](const Graph& graph, const Node& node) {
    const std::string_view operands = kCentered ? "rrwrrr" : "rrwrr";
    return shard_rows(graph.type(node.inputs[1]).shape.rank() - 1, operands.substr(0, node.inputs.size()),
                      kCentered ? "rpp" : "rp");
  };
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{14.0 * static_cast<double>(graph.type(node.inputs[1]).shape.numel()),
                touched_bytes(graph, node)};
  };
  def.inplace = {{kCentered ? 5 : 4, 0}, {0, 0}, {1, 0}};
  return def;
}

}  // namespace

OpDef row_norm_grad_op(bool centered) { return centered ? make<true>() : make<false>(); }

}  // namespace lockstep
