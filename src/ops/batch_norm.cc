// batch_norm(x, weight, bias) {epsilon, training, relu} -> y, mean, rstd, variance.
// batch_norm(x, weight, bias, running_mean, running_var) {training=false} -> y, mean, rstd.
//
// x is [..., C]; statistics are taken per channel over all other axes. Training normalises by the biased
// variance of the batch, as PyTorch does, and also gives the unbiased one: running statistics are moved once
// per step by whoever has the statistics of all its microbatches (train/update/statistics.h). Otherwise the
// running statistics normalise. The gradient flows through y alone.
#include <cmath>

#include "ops/builder.h"

namespace lockstep {
namespace {

int64_t rows_of(const Shape& shape) { return shape.product(0, shape.rank() - 1); }

void check_x(const InferContext& c, int x) {
  c.require_floating(x);
  const Shape& shape = c.shape(x);
  if (shape.rank() < 2) c.fail("operand {} must be [..., channels] with at least 2 axes", x);
  if (c.attributes().flag("training") && rows_of(shape) < 2)
    c.fail("training needs at least 2 values per channel, operand {} has {}; use a larger microbatch", x,
           rows_of(shape));
}

void check_channels(const InferContext& c, int x, int operand, bool parameter) {
  const DType dtype = c.type(operand).dtype;
  const bool stored_like_x = parameter && dtype == c.type(x).dtype;
  if (c.shape(operand) != Shape{c.shape(x)[-1]} || (dtype != DType::kF32 && !stored_like_x))
    c.fail("operand {} must be f32[{}], one number per channel (the last axis)", operand, c.shape(x)[-1]);
}

std::vector<Type> infer(const InferContext& c) {
  const bool training = c.attributes().flag("training");
  if (c.count() != (training ? 3 : 5))
    c.fail("training takes x, weight and bias; otherwise running mean and variance follow them");
  check_x(c, 0);
  for (int operand = 1; operand < c.count(); ++operand) check_channels(c, 0, operand, operand < 3);
  c.require_same_type(2, 1);
  const Type channels{DType::kF32, {c.shape(0)[-1]}};
  if (training) return {c.type(0), channels, channels, channels};
  return {c.type(0), channels, channels};
}

std::vector<Value> gradient(GradientContext& c) {
  std::vector<Value> grads(c.node.inputs.size());
  if (!c.grad(0).valid()) return grads;
  const bool relu = c.attributes().flag("relu");
  std::vector<Value> operands{c.grad(0), c.in(0), c.in(1), c.out(1), c.out(2)};
  if (relu) operands.push_back(c.in(2));
  const Attributes attributes{{"training", c.attributes().flag("training")}, {"relu", relu}};
  const std::vector<Value> results = c.graph.emit_all("batch_norm_grad", operands, attributes);
  for (size_t i = 0; i < 3; ++i) grads[i] = results[i];
  return grads;
}

void reference(const ReferenceContext& c) {
  const RefTensor& x = c.in(0);
  const int64_t channels = x.shape()[-1];
  const int64_t rows = rows_of(x.shape());
  const auto count = static_cast<double>(rows);
  const bool training = c.attributes.flag("training");
  for (int64_t k = 0; k < channels; ++k) {
    double mean = training ? 0.0 : c.in(3)[k];
    double variance = training ? 0.0 : c.in(4)[k];
    if (training) {
      for (int64_t r = 0; r < rows; ++r) mean += x[r * channels + k] / count;
      for (int64_t r = 0; r < rows; ++r) variance += std::pow(x[r * channels + k] - mean, 2.0) / count;
      c.out(3)[k] = variance * count / (count - 1);
    }
    const double rstd = 1.0 / std::sqrt(variance + c.attributes.number("epsilon"));
    c.out(1)[k] = mean;
    c.out(2)[k] = rstd;
    for (int64_t r = 0; r < rows; ++r) {
      const double y = (x[r * channels + k] - mean) * rstd * c.in(1)[k] + c.in(2)[k];
      c.out()[r * channels + k] = c.attributes.flag("relu") && y < 0 ? 0.0 : y;
    }
  }
}

std::vector<Type> infer_grad(const InferContext& c) {
  const bool relu = c.attributes().flag("relu");
  if (c.count() != (relu ? 6 : 5))
    c.fail("the bias is the sixth operand with relu, and must be left out without");
  check_x(c, 1);
  c.require_same_type(0, 1);
  for (int operand = 2; operand < c.count(); ++operand)
    check_channels(c, 1, operand, operand == 2 || operand == 5);
  if (relu) c.require_same_type(5, 2);
  return {c.type(1), c.type(2), c.type(2)};
}

// With h the normalised x: dx = weight * rstd * (dy - mean(dy) - h * mean(dy * h)); without the means where
// the statistics did not come from x. Where a relu was closed, dy counts as 0.
void reference_grad(const ReferenceContext& c) {
  const int64_t channels = c.in(0).shape()[-1];
  const int64_t rows = rows_of(c.in(0).shape());
  const bool relu = c.attributes.flag("relu");
  for (int64_t k = 0; k < channels; ++k) {
    const auto h = [&](int64_t r) { return (c.in(1)[r * channels + k] - c.in(3)[k]) * c.in(4)[k]; };
    const auto dy = [&](int64_t r) {
      const bool closed = relu && h(r) * c.in(2)[k] + c.in(5)[k] <= 0;
      return closed ? 0.0 : c.in(0)[r * channels + k];
    };
    for (int64_t r = 0; r < rows; ++r) {
      c.out(1)[k] += dy(r) * h(r);
      c.out(2)[k] += dy(r);
    }
    const double share = c.attributes.flag("training") ? 1.0 / static_cast<double>(rows) : 0.0;
    for (int64_t r = 0; r < rows; ++r)
      c.out()[r * channels + k] =
          c.in(2)[k] * c.in(4)[k] * (dy(r) - share * (c.out(2)[k] + h(r) * c.out(1)[k]));
  }
}

std::vector<int64_t> row_axes(const Shape& shape) {
  std::vector<int64_t> axes;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) axes.push_back(axis);
  return axes;
}

std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const Value x = b.cast(inputs[0], DType::kF32);
  const auto rows = static_cast<double>(rows_of(b.shape(x)));
  const bool training = node.attributes.flag("training");
  const std::vector<int64_t> axes = row_axes(b.shape(x));
  const Value mean = training ? b.mean(x, axes) : inputs[3];
  const Value centered = b.sub(x, mean);
  const Value variance = training ? b.mean(b.mul(centered, centered), axes) : inputs[4];
  const Value rstd = b.rsqrt(b.shift(variance, node.attributes.number("epsilon")));
  Value y = b.mul(b.mul(centered, rstd), b.cast(inputs[1], DType::kF32));
  y = b.cast(b.add(y, b.cast(inputs[2], DType::kF32)), b.type(inputs[0]).dtype);
  if (node.attributes.flag("relu")) y = b.op("relu", {y});
  if (training) return {y, mean, rstd, b.scale(variance, rows / (rows - 1))};
  return {y, mean, rstd};
}

std::vector<Value> decompose_grad(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const Value weight = b.cast(inputs[2], DType::kF32), rstd = inputs[4];
  const Value h = b.mul(b.sub(b.cast(inputs[1], DType::kF32), inputs[3]), rstd);
  Value dy = b.cast(inputs[0], DType::kF32);
  if (node.attributes.flag("relu")) {
    const Value y = b.add(b.mul(h, weight), b.cast(inputs[5], DType::kF32));
    dy = b.mul(dy, b.indicator("gt", y, b.constant(0, {DType::kF32, {}})));
  }
  const std::vector<int64_t> axes = row_axes(b.shape(h));
  const Value dweight = b.sum(b.mul(dy, h), axes), dbias = b.sum(dy, axes);
  Value inner = dy;
  if (node.attributes.flag("training")) {
    const double share = 1.0 / static_cast<double>(rows_of(b.shape(h)));
    inner = b.sub(dy, b.scale(b.add(b.mul(h, dweight), dbias), share));
  }
  const DType stored = b.type(inputs[2]).dtype;
  return {b.cast(b.mul(inner, b.mul(weight, rstd)), b.type(inputs[1]).dtype), b.cast(dweight, stored),
          b.cast(dbias, stored)};
}

// Channels can be split. Rows cannot in training: the statistics are those of the whole batch.
std::vector<ShardingSignature> sharding(const Graph& graph, const Node& node) {
  const auto signature = [&](Placement images, Placement channels) {
    ShardingSignature result;
    const size_t images_in = node.op->name == "batch_norm" ? 1 : 2;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      result.inputs.push_back(i < images_in ? images : channels);
    for (size_t i = 0; i < node.outputs.size(); ++i) result.outputs.push_back(i == 0 ? images : channels);
    return result;
  };
  const Placement whole = Placement::replicate();
  return {signature(whole, whole),
          signature(Placement::split(graph.type(node.inputs[0]).shape.rank() - 1), Placement::split(0))};
}

Cost cost(const Graph& graph, const Node& node) {
  return {10.0 * static_cast<double>(graph.type(node.inputs[0]).shape.numel()), touched_bytes(graph, node)};
}

}  // namespace

OpDef batch_norm_op() {
  OpDef def{.name = "batch_norm",
            .summary = "channels to mean 0 and variance 1 over the batch, then times weight plus bias"};
  def.attributes = {{"epsilon", 1e-5, "added to the variance before the square root"},
                    {"training", true, "normalise by the batch's statistics instead of the running ones"},
                    {"relu", false, "then max(0, y), in the same sweep"}};
  def.min_inputs = 3;
  def.max_inputs = 5;
  def.infer = infer;
  def.gradient = gradient;
  def.reference = reference;
  def.decompose = decompose;
  def.sharding = sharding;
  def.cost = cost;
  def.inplace = {{0, 0}};
  return def;
}

// batch_norm_grad(dy, x, weight, mean, rstd[, bias]) {training, relu} -> dx, dweight, dbias. With relu the
// bias is needed to find again which elements passed.
OpDef batch_norm_grad_op() {
  OpDef def{.name = "batch_norm_grad", .summary = "gradient of batch_norm"};
  def.attributes = {{"training", true, "whether mean and rstd came from x"},
                    {"relu", false, "whether a relu followed"}};
  def.min_inputs = 5;
  def.max_inputs = 6;
  def.traits = {.reduction = true};
  def.infer = infer_grad;
  def.reference = reference_grad;
  def.decompose = decompose_grad;
  def.sharding = sharding;
  def.cost = cost;
  def.inplace = {{0, 0}, {1, 0}};
  return def;
}

}  // namespace lockstep
