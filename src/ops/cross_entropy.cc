// cross_entropy(logits: [N, V], labels: i32[N][, weights: f32[N]]) {ignore, smoothing} -> loss, count, lse.
//
// loss is the sum over the rows whose label is not `ignore`, count their number: dividing is left to whoever
// knows the whole batch. lse is the log-sum-exp of each row (0 where ignored); the gradient rebuilds the
// probabilities from it, so they are never stored. With weights (data and never a parameter's), the term of a
// row is multiplied by its weight. Logits that are cut by classes have ops/cross_entropy_leaves.cc, and the
// same gradient, of the columns from `first` on of all `classes`.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/builder.h"
#include "ops/shard_rows.h"

namespace lockstep {
namespace {

std::vector<AttributeDef> label_attributes() {
  return {{"ignore", int64_t{-100}, "rows with this label have no loss"},
          {"smoothing", 0.0, "share of the target spread evenly over all classes, in [0, 1)"}};
}

// `weights` is the place of that operand, if it is there.
void check(const InferContext& c, int logits, int weights) {
  c.require_floating(logits);
  const Shape& shape = c.shape(logits);
  if (shape.rank() != 2 || shape[1] == 0)
    c.fail("operand {} must be [rows, classes]; reshape the leading axes into one", logits);
  if (c.type(logits + 1) != Type{DType::kI32, {shape[0]}})
    c.fail("operand {} must be i32[{}], one label per row; reshape or cast it", logits + 1, shape[0]);
  if (c.count() > weights && c.type(weights) != Type{DType::kF32, {shape[0]}})
    c.fail("operand {} is {}; weights must be f32[{}], one per row", weights, to_string(c.type(weights)),
           shape[0]);
  const double smoothing = c.attributes().number("smoothing");
  if (!(smoothing >= 0 && smoothing < 1)) c.fail("smoothing is {}; it must lie in [0, 1)", smoothing);
}

std::vector<Type> infer(const InferContext& c) {
  check(c, 0, 2);
  return {{DType::kF32, {}}, {DType::kI64, {}}, {DType::kF32, {c.shape(0)[0]}}};
}

std::vector<Value> gradient(GradientContext& c) {
  std::vector<Value> grads(c.needed.size());
  const bool weighted = c.needed.size() == 3;
  if (weighted && c.needed[2]) throw UserError("cross_entropy has no gradient for its weights");
  if (!c.grad().valid()) return grads;
  std::vector<Value> operands{c.grad(), c.in(0), c.in(1), c.out(2)};
  if (weighted) operands.push_back(c.in(2));
  grads[0] = c.graph.emit_all("cross_entropy_grad", operands, c.attributes()).at(0);
  return grads;
}

void reference(const ReferenceContext& c) {
  const RefTensor& logits = c.in(0);
  const int64_t classes = logits.shape()[1];
  const double smoothing = c.attributes.number("smoothing");
  const auto ignore = static_cast<double>(c.attributes.integer("ignore"));
  for (int64_t r = 0; r < logits.shape()[0]; ++r) {
    const double label = c.in(1)[r];
    if (label == ignore) continue;
    if (label < 0 || label >= static_cast<double>(classes))
      throw UserError(
          "cross_entropy: row {} has label {}; labels lie in [0, {}), or are {} to ignore the row", r, label,
          classes, ignore);
    const double* row = logits.data.data() + r * classes;
    const double highest = *std::max_element(row, row + classes);
    double total = 0;
    double mean = 0;
    for (int64_t i = 0; i < classes; ++i) {
      total += std::exp(row[i] - highest);
      mean += row[i] / static_cast<double>(classes);
    }
    const double lse = highest + std::log(total);
    const double weight = c.inputs.size() == 3 ? c.in(2)[r] : 1.0;
    c.out(2)[r] = lse;
    c.out(0)[0] += weight * (lse - (1 - smoothing) * row[static_cast<int64_t>(label)] - smoothing * mean);
    c.out(1)[0] += 1;
  }
}

// Of all columns, of which the operand may have some.
int64_t all_classes(const Attributes& attributes, const Shape& logits) {
  const int64_t classes = attributes.integer("classes");
  return classes > 0 ? classes : logits[1];
}

std::vector<Type> infer_grad(const InferContext& c) {
  if (c.type(0) != Type{DType::kF32, {}}) c.fail("operand 0, the gradient of the loss, must be f32[]");
  check(c, 1, 4);
  if (c.type(3) != Type{DType::kF32, {c.shape(1)[0]}})
    c.fail("operand 3 must be f32[{}], the lse of cross_entropy", c.shape(1)[0]);
  const int64_t first = c.attributes().integer("first"), columns = c.shape(1)[1];
  const int64_t classes = all_classes(c.attributes(), c.shape(1));
  if (first < 0 || first + columns > classes)
    c.fail("the {} columns from {} on are no part of {} classes", columns, first, classes);
  return {c.type(1)};
}

void reference_grad(const ReferenceContext& c) {
  const RefTensor& logits = c.in(1);
  const int64_t columns = logits.shape()[1], first = c.attributes.integer("first");
  const int64_t classes = all_classes(c.attributes, logits.shape());
  const double smoothing = c.attributes.number("smoothing");
  for (int64_t r = 0; r < logits.shape()[0]; ++r) {
    const double label = c.in(2)[r];
    if (label == static_cast<double>(c.attributes.integer("ignore"))) continue;
    const double weight = c.inputs.size() == 5 ? c.in(4)[r] : 1.0;
    for (int64_t i = 0; i < columns; ++i) {
      const double probability = std::exp(logits[r * columns + i] - c.in(3)[r]);
      const double target = (static_cast<double>(first + i) == label ? 1 - smoothing : 0.0) +
                            smoothing / static_cast<double>(classes);
      c.out()[r * columns + i] = c.in(0)[0] * weight * (probability - target);
    }
  }
}

// What both decompositions read: the logits in f32, which rows count, and which class each is labelled with.
// A label that is no class counts as a row whose target has no logit; nothing looks for it.
struct Rows {
  Value x;        // f32 [N, V]
  Value counted;  // f32 [N]: 0 where ignored
  Value target;   // f32 [N, V]: 1 at the label
};

Rows rows_of(Builder& b, const Attributes& attributes, Value logits, Value labels, int64_t first = 0) {
  const Shape shape = b.shape(logits);
  const Value ignored = b.constant_like(static_cast<double>(attributes.integer("ignore")), labels);
  const Value own = first == 0 ? labels : b.sub(labels, b.constant_like(static_cast<double>(first), labels));
  const Value classes =
      b.op("iota", {}, {{"shape", std::vector<int64_t>{1, shape[1]}}, {"axis", int64_t{1}}});
  return {b.cast(logits, DType::kF32), b.indicator("ne", labels, ignored),
          b.indicator("eq", b.reshape(own, {shape[0], 1}), classes)};
}

std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const auto [x, counted, target] = rows_of(b, node.attributes, inputs[0], inputs[1]);
  const int64_t rows = b.shape(x)[0];
  const double smoothing = node.attributes.number("smoothing");
  const Value highest = b.max(x, {1}, true);
  const Value total = b.sum(b.exp(b.sub(x, highest)), {1});
  const Value lse = b.add(b.reshape(highest, {rows}), b.log(total));
  Value term = b.sub(lse, b.scale(b.sum(b.mul(x, target), {1}), 1 - smoothing));
  if (smoothing != 0) term = b.sub(term, b.scale(b.mean(x, {1}), smoothing));
  if (inputs.size() == 3) term = b.mul(term, inputs[2]);
  return {b.sum(b.mul(term, counted), {0}), b.cast(b.sum(counted, {0}), DType::kI64), b.mul(lse, counted)};
}

std::vector<Value> decompose_grad(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const auto [x, counted, target] =
      rows_of(b, node.attributes, inputs[1], inputs[2], node.attributes.integer("first"));
  const Shape column{b.shape(x)[0], 1};
  const double smoothing = node.attributes.number("smoothing");
  const Value probability = b.exp(b.sub(x, b.reshape(inputs[3], column)));
  const double spread = smoothing / static_cast<double>(all_classes(node.attributes, b.shape(x)));
  const Value slope = b.sub(probability, b.shift(b.scale(target, 1 - smoothing), spread));
  Value factor = b.mul(b.reshape(counted, column), inputs[0]);
  if (inputs.size() == 5) factor = b.mul(factor, b.reshape(inputs[4], column));
  return {b.cast(b.mul(slope, factor), b.type(inputs[1]).dtype)};
}

// An exponential counts as ten operations.
template <int kLogits>
Cost cost(const Graph& graph, const Node& node) {
  return {13.0 * static_cast<double>(graph.type(node.inputs[kLogits]).shape.numel()),
          touched_bytes(graph, node)};
}

}  // namespace

OpDef cross_entropy_op() {
  OpDef def{.name = "cross_entropy",
            .summary = "summed cross-entropy of softmax(logits) against labels, and the count"};
  def.attributes = label_attributes();
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.traits = {.reduction = true};
  def.infer = infer;
  def.gradient = gradient;
  def.reference = reference;
  def.decompose = decompose;
  def.sharding = [](const Graph&, const Node& node) {
    return shard_rows(1, node.inputs.size() == 3 ? "rrr" : "rr", "ppr");
  };
  def.cost = cost<0>;
  return def;
}

// cross_entropy_grad(dloss, logits, labels, lse[, weights]) {ignore, smoothing, first, classes} -> dlogits.
OpDef cross_entropy_grad_op() {
  OpDef def{.name = "cross_entropy_grad",
            .summary = "gradient of cross_entropy, rebuilt from the logits and their lse"};
  def.attributes = label_attributes();
  def.attributes.push_back({"first", int64_t{0}, "the class of the first column"});
  def.attributes.push_back({"classes", int64_t{0}, "of all columns; 0: they are all here"});
  def.min_inputs = 4;
  def.max_inputs = 5;
  def.infer = infer_grad;
  def.reference = reference_grad;
  def.decompose = decompose_grad;
  def.sharding = [](const Graph&, const Node& node) {
    return shard_rows(1, node.inputs.size() == 5 ? "wrrrr" : "wrrr", "r");
  };
  def.cost = cost<1>;
  def.inplace = {{1, 0}};
  return def;
}

}  // namespace lockstep
