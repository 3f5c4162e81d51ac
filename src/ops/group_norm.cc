// group_norm(x, weight, bias) {groups, epsilon} -> y, mean, rstd.
//
// x is [N, ..., C]; the channels of each sample are cut into groups, each normalised over its channels and
// all pixels. mean and rstd are f32[N, groups]. The gradient flows through y alone.
#include <cmath>

#include "ops/builder.h"
#include "ops/shard_rows.h"

namespace lockstep {
namespace {

void check(const InferContext& c, int x, int first_parameter, int parameters) {
  c.require_floating(x);
  const Shape& shape = c.shape(x);
  const int64_t groups = c.attributes().integer("groups");
  if (shape.rank() < 2) c.fail("operand {} must be [samples, ..., channels] with at least 2 axes", x);
  if (groups < 1 || shape[-1] % groups != 0)
    c.fail("groups is {}; it must divide the {} channels of operand {}", groups, shape[-1], x);
  if (shape.product(1, shape.rank()) == 0)
    c.fail("operand {} has empty samples; there is nothing to normalise", x);
  for (int operand = first_parameter; operand < first_parameter + parameters; ++operand)
    if (c.shape(operand) != Shape{shape[-1]} ||
        (c.type(operand).dtype != DType::kF32 && c.type(operand).dtype != c.type(x).dtype))
      c.fail("operand {} must be f32[{}], one number per channel (the last axis)", operand, shape[-1]);
}

Type statistic(const InferContext& c, int x) {
  return {DType::kF32, {c.shape(x)[0], c.attributes().integer("groups")}};
}

// The index of every element of one group of one sample.
template <typename Body>
void for_each_in_group(const Shape& shape, int64_t groups, int64_t sample, int64_t group, const Body& body) {
  const int64_t channels = shape[-1];
  const int64_t pixels = shape.product(1, shape.rank() - 1);
  const int64_t width = channels / groups;
  for (int64_t p = 0; p < pixels; ++p)
    for (int64_t k = group * width; k < (group + 1) * width; ++k)
      body((sample * pixels + p) * channels + k, k);
}

void reference(const ReferenceContext& c) {
  const RefTensor& x = c.in(0);
  const int64_t groups = c.attributes.integer("groups");
  for (int64_t n = 0; n < x.shape()[0]; ++n)
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t members = x.shape().product(1, x.shape().rank()) / groups;
      const auto count = static_cast<double>(members);
      double mean = 0;
      double variance = 0;
      for_each_in_group(x.shape(), groups, n, g, [&](int64_t i, int64_t) { mean += x[i] / count; });
      for_each_in_group(x.shape(), groups, n, g,
                        [&](int64_t i, int64_t) { variance += std::pow(x[i] - mean, 2.0) / count; });
      const double rstd = 1.0 / std::sqrt(variance + c.attributes.number("epsilon"));
      c.out(1)[n * groups + g] = mean;
      c.out(2)[n * groups + g] = rstd;
      for_each_in_group(x.shape(), groups, n, g, [&](int64_t i, int64_t k) {
        c.out()[i] = (x[i] - mean) * rstd * c.in(1)[k] + c.in(2)[k];
      });
    }
}

std::vector<Type> infer_grad(const InferContext& c) {
  check(c, 1, 2, 1);
  c.require_same_type(0, 1);
  for (const int operand : {3, 4})
    if (c.type(operand) != statistic(c, 1))
      c.fail("operand {} must be {}, a statistic of group_norm", operand, to_string(statistic(c, 1)));
  return {c.type(1), c.type(2), c.type(2)};
}

// As for layer_norm, with the means over a group.
void reference_grad(const ReferenceContext& c) {
  const RefTensor& dy = c.in(0);
  const Shape& shape = dy.shape();
  const int64_t groups = c.attributes.integer("groups");
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t members = shape.product(1, shape.rank()) / groups;
      const auto count = static_cast<double>(members);
      const double mean = c.in(3)[n * groups + g];
      const double rstd = c.in(4)[n * groups + g];
      double mean_g = 0;
      double mean_gh = 0;
      for_each_in_group(shape, groups, n, g, [&](int64_t i, int64_t k) {
        const double h = (c.in(1)[i] - mean) * rstd;
        mean_g += dy[i] * c.in(2)[k] / count;
        mean_gh += dy[i] * c.in(2)[k] * h / count;
        c.out(1)[k] += dy[i] * h;
        c.out(2)[k] += dy[i];
      });
      for_each_in_group(shape, groups, n, g, [&](int64_t i, int64_t k) {
        c.out()[i] = rstd * (dy[i] * c.in(2)[k] - mean_g - (c.in(1)[i] - mean) * rstd * mean_gh);
      });
    }
}

// x as [N, pixels, groups, channels of a group]; statistics and parameters so that they broadcast to it.
struct Grouped {
  Builder& b;
  Shape shape;  // of x
  int64_t groups;

  Value x(Value value) const {
    const int64_t pixels = shape.product(1, shape.rank() - 1);
    return b.reshape(b.cast(value, DType::kF32), {shape[0], pixels, groups, shape[-1] / groups});
  }
  Value statistic(Value value) const { return b.reshape(value, {shape[0], 1, groups, 1}); }
  Value parameter(Value value) const {
    return b.reshape(b.cast(value, DType::kF32), {groups, shape[-1] / groups});
  }
};

std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const Type type = b.type(inputs[0]);
  const Grouped grouped{b, type.shape, node.attributes.integer("groups")};
  const Value x = grouped.x(inputs[0]);
  const Value mean = b.mean(x, {1, 3}, true);
  const Value centered = b.sub(x, mean);
  const Value variance = b.mean(b.mul(centered, centered), {1, 3}, true);
  const Value rstd = b.rsqrt(b.shift(variance, node.attributes.number("epsilon")));
  const Value y =
      b.add(b.mul(b.mul(centered, rstd), grouped.parameter(inputs[1])), grouped.parameter(inputs[2]));
  const Shape statistic{type.shape[0], grouped.groups};
  return {b.cast(b.reshape(y, type.shape), type.dtype), b.reshape(mean, statistic),
          b.reshape(rstd, statistic)};
}

std::vector<Value> decompose_grad(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const Type type = b.type(inputs[1]);
  const Grouped grouped{b, type.shape, node.attributes.integer("groups")};
  const Value dy = grouped.x(inputs[0]);
  const Value rstd = grouped.statistic(inputs[4]);
  const Value h = b.mul(b.sub(grouped.x(inputs[1]), grouped.statistic(inputs[3])), rstd);
  const Value g = b.mul(dy, grouped.parameter(inputs[2]));
  const Value inner = b.sub(b.sub(g, b.mean(g, {1, 3}, true)), b.mul(h, b.mean(b.mul(g, h), {1, 3}, true)));
  const Type parameter = b.type(inputs[2]);
  const auto per_channel = [&](Value value) {
    return b.cast(b.reshape(b.sum(value, {0, 1}), parameter.shape), parameter.dtype);
  };
  return {b.cast(b.reshape(b.mul(inner, rstd), type.shape), type.dtype), per_channel(b.mul(dy, h)),
          per_channel(dy)};
}

Cost cost(const Graph& graph, const Node& node) {
  return {10.0 * static_cast<double>(graph.type(node.inputs[0]).shape.numel()), touched_bytes(graph, node)};
}

AttributeDef groups_attribute() {
  return {"groups", int64_t{32}, "into how many groups the channels are cut"};
}

}  // namespace

OpDef group_norm_op() {
  OpDef def{.name = "group_norm",
            .summary = "groups of channels to mean 0 and variance 1 per sample, then times weight plus bias"};
  def.attributes = {groups_attribute(), {"epsilon", 1e-5, "added to the variance before the square root"}};
  def.min_inputs = def.max_inputs = 3;
  def.infer = [](const InferContext& c) {
    check(c, 0, 1, 2);
    c.require_same_type(2, 1);
    return std::vector<Type>{c.type(0), statistic(c, 0), statistic(c, 0)};
  };
  def.gradient = [](GradientContext& c) {
    if (!c.grad(0).valid()) return std::vector<Value>(3);
    const Value operands[] = {c.grad(0), c.in(0), c.in(1), c.out(1), c.out(2)};
    return c.graph.emit_all("group_norm_grad", operands, {{"groups", c.attributes().integer("groups")}});
  };
  def.reference = reference;
  def.decompose = decompose;
  def.sharding = [](const Graph&, const Node&) { return shard_rows(1, "rww", "rrr"); };
  def.cost = cost;
  def.inplace = {{0, 0}};
  return def;
}

// group_norm_grad(dy, x, weight, mean, rstd) {groups} -> dx, dweight, dbias.
OpDef group_norm_grad_op() {
  OpDef def{.name = "group_norm_grad", .summary = "gradient of group_norm"};
  def.attributes = {groups_attribute()};
  def.min_inputs = def.max_inputs = 5;
  def.traits = {.reduction = true};
  def.infer = infer_grad;
  def.reference = reference_grad;
  def.decompose = decompose_grad;
  def.sharding = [](const Graph&, const Node&) { return shard_rows(1, "rrwrr", "rpp"); };
  def.cost = cost;
  def.inplace = {{0, 0}, {1, 0}};
  return def;
}

}  // namespace lockstep
