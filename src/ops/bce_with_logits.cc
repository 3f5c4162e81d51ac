// bce_with_logits(logits, labels[, weights]) -> loss, count: binary cross-entropy of sigmoid(logits) against
// labels in [0, 1], summed; count is the number of elements. Labels are stored in f32 or like the logits.
// With weights (f32, data and never a parameter's), the term of an element is multiplied by its weight.
#include <cmath>

#include "base/error.h"
#include "ops/builder.h"

namespace lockstep {
namespace {

// `weights` is the place of that operand, if it is there.
void check(const InferContext& c, int logits, int weights) {
  c.require_floating(logits);
  const int labels = logits + 1;
  if (c.shape(labels) != c.shape(logits))
    c.fail("operand {} is {}; labels must have the logits' shape {}: reshape one of them", labels,
           to_string(c.type(labels)), to_string(c.shape(logits)));
  const DType dtype = c.type(labels).dtype;
  if (dtype != DType::kF32 && dtype != c.type(logits).dtype)
    c.fail("operand {} is {}; labels must be f32 or {}: cast them", labels, name_of(dtype),
           name_of(c.type(logits).dtype));
  if (c.count() > weights && c.type(weights) != Type{DType::kF32, c.shape(logits)})
    c.fail("operand {} is {}; weights must be f32 and have the logits' shape {}", weights,
           to_string(c.type(weights)), to_string(c.shape(logits)));
}

std::vector<Value> gradient(GradientContext& c) {
  Builder b(c.graph);
  const bool weighted = c.needed.size() == 3;
  std::vector<Value> grads(c.needed.size());
  if (weighted && c.needed[2]) throw UserError("bce_with_logits has no gradient for its weights");
  if (c.needed[0])
    grads[0] = weighted ? b.op("bce_with_logits_grad", {c.grad(), c.in(0), c.in(1), c.in(2)})
                        : b.op("bce_with_logits_grad", {c.grad(), c.in(0), c.in(1)});
  if (c.needed[1]) {
    const DType dtype = c.type(c.in(1)).dtype;
    grads[1] = b.neg(b.mul(b.cast(c.in(0), dtype), b.cast(c.grad(), dtype)));
    if (weighted) grads[1] = b.mul(grads[1], b.cast(c.in(2), dtype));
  }
  return grads;
}

void reference(const ReferenceContext& c) {
  for (int64_t i = 0; i < c.in(0).numel(); ++i) {
    const double x = c.in(0)[i];
    const double weight = c.inputs.size() == 3 ? c.in(2)[i] : 1.0;
    c.out(0)[0] += weight * (std::fmax(x, 0.0) - x * c.in(1)[i] + std::log1p(std::exp(-std::fabs(x))));
  }
  c.out(1)[0] = static_cast<double>(c.in(0).numel());
}

// log(1 + e^-|x|) for log1p: it loses what is below half a unit of 1, which max(x, 0) hides or the sum
// forgets.
std::vector<Value> decompose(Graph& graph, const Node&, std::span<const Value> inputs) {
  Builder b(graph);
  const Value x = b.cast(inputs[0], DType::kF32), labels = b.cast(inputs[1], DType::kF32);
  const Value tail = b.log(b.shift(b.exp(b.neg(b.op("abs", {x}))), 1.0));
  Value term = b.add(b.sub(b.op("relu", {x}), b.mul(x, labels)), tail);
  if (inputs.size() == 3) term = b.mul(term, inputs[2]);
  const int64_t count = b.shape(x).numel();
  return {b.sum(b.reshape(term, {count}), {0}), b.constant(static_cast<double>(count), {DType::kI64, {}})};
}

std::vector<Value> decompose_grad(Graph& graph, const Node&, std::span<const Value> inputs) {
  Builder b(graph);
  const Value x = b.cast(inputs[1], DType::kF32), labels = b.cast(inputs[2], DType::kF32);
  Value slope = b.mul(b.sub(b.op("sigmoid", {x}), labels), inputs[0]);
  if (inputs.size() == 4) slope = b.mul(slope, inputs[3]);
  return {b.cast(slope, b.type(inputs[1]).dtype)};
}

// All axes can be split: the loss is a sum of independent terms.
template <int kLogits>
std::vector<ShardingSignature> sharding(const Graph& graph, const Node& node) {
  const Placement whole = Placement::replicate();
  std::vector<ShardingSignature> signatures;
  for (int axis = -1; axis < graph.type(node.inputs[kLogits]).shape.rank(); ++axis) {
    const Placement part = axis < 0 ? whole : Placement::split(axis);
    const Placement sum = axis < 0 ? whole : Placement::partial();
    // Logits, labels and, where there are any, weights.
    std::vector<Placement> inputs(node.inputs.size(), part);
    if (kLogits == 1) inputs[0] = whole;
    if (kLogits == 0)
      signatures.push_back({std::move(inputs), {sum, sum}});
    else
      signatures.push_back({std::move(inputs), {part}});
  }
  return signatures;
}

template <int kLogits>
Cost cost(const Graph& graph, const Node& node) {
  return {25.0 * static_cast<double>(graph.type(node.inputs[kLogits]).shape.numel()),
          touched_bytes(graph, node)};
}

}  // namespace

OpDef bce_with_logits_op() {
  OpDef def{.name = "bce_with_logits",
            .summary = "summed binary cross-entropy of sigmoid(logits), and the count"};
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.traits = {.reduction = true};
  def.infer = [](const InferContext& c) {
    check(c, 0, 2);
    return std::vector<Type>{{DType::kF32, {}}, {DType::kI64, {}}};
  };
  def.gradient = gradient;
  def.reference = reference;
  def.decompose = decompose;
  def.sharding = sharding<0>;
  def.cost = cost<0>;
  return def;
}

// bce_with_logits_grad(dloss, logits, labels[, weights]) = dloss * (sigmoid(logits) - labels) * weights.
OpDef bce_with_logits_grad_op() {
  OpDef def{.name = "bce_with_logits_grad", .summary = "gradient of bce_with_logits"};
  def.min_inputs = 3;
  def.max_inputs = 4;
  def.infer = [](const InferContext& c) {
    if (c.type(0) != Type{DType::kF32, {}}) c.fail("operand 0, the gradient of the loss, must be f32[]");
    check(c, 1, 3);
    return std::vector<Type>{c.type(1)};
  };
  def.reference = [](const ReferenceContext& c) {
    for (int64_t i = 0; i < c.out().numel(); ++i)
      c.out()[i] = c.in(0)[0] * (1.0 / (1.0 + std::exp(-c.in(1)[i])) - c.in(2)[i]) *
                   (c.inputs.size() == 4 ? c.in(3)[i] : 1.0);
  };
  def.decompose = decompose_grad;
  def.sharding = sharding<1>;
  def.cost = cost<1>;
  def.inplace = {{1, 0}};
  return def;
}

}  // namespace lockstep
