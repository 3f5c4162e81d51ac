#include "ops/row_norm.h"

#include <cmath>

#include "ops/builder.h"
#include "ops/shard_rows.h"

namespace lockstep {
namespace {

template <bool kCentered>
std::vector<Type> infer(const InferContext& c) {
  check_row_norm(c, 0, 1, kCentered);
  const Type statistic = row_statistic(c.type(0));
  if (kCentered) return {c.type(0), statistic, statistic};
  return {c.type(0), statistic};
}

template <bool kCentered>
std::vector<Value> gradient(GradientContext& c) {
  if (!c.grad(0).valid()) return std::vector<Value>(c.node.inputs.size());
  std::vector<Value> operands{c.grad(0), c.in(0), c.in(1), c.out(1)};
  if (kCentered) operands.push_back(c.out(2));
  return c.graph.emit_all(kCentered ? "layer_norm_grad" : "rms_norm_grad", operands);
}

template <bool kCentered>
void reference(const ReferenceContext& c) {
  const RefTensor& x = c.in(0);
  const int64_t cols = x.shape()[-1];
  const auto count = static_cast<double>(cols);
  for (int64_t r = 0; r < x.numel() / cols; ++r) {
    const int64_t row = r * cols;
    double mean = 0;
    if (kCentered) {
      for (int64_t i = 0; i < cols; ++i) mean += x[row + i] / count;
      c.out(1)[r] = mean;
    }
    double variance = 0;
    for (int64_t i = 0; i < cols; ++i) variance += (x[row + i] - mean) * (x[row + i] - mean) / count;
    const double rstd = 1.0 / std::sqrt(variance + c.attributes.number("epsilon"));
    c.out(kCentered ? 2 : 1)[r] = rstd;
    for (int64_t i = 0; i < cols; ++i)
      c.out()[row + i] = (x[row + i] - mean) * rstd * c.in(1)[i] + (kCentered ? c.in(2)[i] : 0.0);
  }
}

template <bool kCentered>
std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const Type type = b.type(inputs[0]);
  const Shape statistic = row_statistic(type).shape;
  Value x = b.cast(inputs[0], DType::kF32);
  std::vector<Value> results;
  if (kCentered) {
    const Value mean = b.mean(x, {-1}, true);
    results.push_back(b.reshape(mean, statistic));
    x = b.sub(x, mean);
  }
  const Value variance = b.mean(b.mul(x, x), {-1}, true);
  const Value rstd = b.rsqrt(b.shift(variance, node.attributes.number("epsilon")));
  results.push_back(b.reshape(rstd, statistic));
  Value y = b.mul(b.mul(x, rstd), b.cast(inputs[1], DType::kF32));
  if (kCentered) y = b.add(y, b.cast(inputs[2], DType::kF32));
  results.insert(results.begin(), b.cast(y, type.dtype));
  return results;
}

template <bool kCentered>
OpDef make() {
  OpDef def;
  def.attributes = {{"epsilon", 1e-5, "added to the variance before the square root"}};
  def.min_inputs = def.max_inputs = kCentered ? 3 : 2;
  def.traits = {.recompute_cheap = true};
  def.infer = infer<kCentered>;
  def.gradient = gradient<kCentered>;
  def.reference = reference<kCentered>;
  def.decompose = decompose<kCentered>;
  def.sharding = [](const Graph& graph, const Node& node) {
    return shard_rows(graph.type(node.inputs[0]).shape.rank() - 1, kCentered ? "rww" : "rw",
                      kCentered ? "rrr" : "rr");
  };
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{8.0 * static_cast<double>(graph.type(node.inputs[0]).shape.numel()),
                touched_bytes(graph, node)};
  };
  def.inplace = {{0, 0}};
  return def;
}

}  // namespace

OpDef row_norm_op(bool centered) { return centered ? make<true>() : make<false>(); }

void check_row_norm(const InferContext& context, int x, int weight, bool centered) {
  context.require_floating(x);
  const Type& rows = context.type(x);
  if (rows.shape.rank() < 1 || rows.shape[-1] == 0)
    context.fail("operand {} needs a last axis with at least one element to normalise over", x);
  const Shape parameter{rows.shape[-1]};
  for (int operand = weight; operand < weight + (centered ? 2 : 1); ++operand) {
    if (context.shape(operand) != parameter)
      context.fail("operand {} must have shape {}, the last axis of operand {}", operand,
                   to_string(parameter), x);
    const DType dtype = context.type(operand).dtype;
    if (dtype != DType::kF32 && dtype != rows.dtype)
      context.fail("operand {} is {}; it must be f32 or {} like operand {}: cast it", operand, name_of(dtype),
                   name_of(rows.dtype), x);
  }
  if (centered) context.require_same_type(weight + 1, weight);
}

Type row_statistic(const Type& x) { return {DType::kF32, x.shape.without(x.shape.rank() - 1)}; }

}  // namespace lockstep
