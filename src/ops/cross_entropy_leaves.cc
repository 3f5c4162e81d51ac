// cross_entropy of logits that are cut by classes, a leaf of a split model having V/G of the V columns
// (model/tensor_leaves.h). No worker has all columns of a row.
//
// cross_entropy_leaves(logits of this worker's leaves ..., labels[, weights]) {leaves, first, classes, group,
// size, ignore, smoothing} -> loss, count, lse: those of cross_entropy over the columns of all leaves of all
// workers of the group. Its gradient is a cross_entropy_grad for each leaf. The pass `leaves` makes of it
//
//   a = cross_entropy_part(logits.leaf0, labels)   b = cross_entropy_part(logits.leaf1, labels) {first=V/G}
//   own = concat(a, b)   all = all_gather(own)
//   loss, count, lse = cross_entropy_join(all, labels)
//
// cross_entropy_part -> f32[1, 3 or 4, N]: of each row the maximum of its columns here, the sum of the
// exponentials of their differences from it, the logit of its label (0 where another leaf has it) and, with
// smoothing, the sum of the columns; 0, 1, 0 and 0 where the row is ignored.
// cross_entropy_join of [G, 3 or 4, N]: a leaf's sum is rescaled to the maximum of all, sums of leaves are
// added up by the binary tree over their indices (ops/leaf_sum.cc).
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/builder.h"
#include "ops/collective.h"
#include "ops/shard_rows.h"

namespace lockstep {
namespace {

// Subtracting an infinite maximum would turn columns that are all masked into NaN.
constexpr double kLowest = std::numeric_limits<float>::lowest();
constexpr int64_t kHighest = 0, kTotal = 1, kTarget = 2, kSum = 3;  // along axis 1 of the parts

std::vector<AttributeDef> label_attributes() {
  return {{"ignore", int64_t{-100}, "rows with this label have no loss"},
          {"smoothing", 0.0, "share of the target spread evenly over all classes, in [0, 1)"}};
}
std::vector<AttributeDef> column_attributes() {
  return {{"first", int64_t{0}, "the class of the first column"},
          {"classes", int64_t{0}, "of the columns of all leaves", true}};
}
std::vector<AttributeDef> operator+(std::vector<AttributeDef> a, const std::vector<AttributeDef>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Attributes only(const Attributes& attributes, std::initializer_list<std::string_view> names) {
  Attributes result;
  for (const std::string_view name : names) result.set(name, *attributes.find(name));
  return result;
}

bool smooths(const Attributes& attributes) { return attributes.number("smoothing") != 0; }
int64_t statistics(const Attributes& attributes) { return smooths(attributes) ? 4 : 3; }

void require_smoothing(const InferContext& c) {
  const double smoothing = c.attributes().number("smoothing");
  if (!(smoothing >= 0 && smoothing < 1)) c.fail("smoothing is {}; it must lie in [0, 1)", smoothing);
}

void require_per_row(const InferContext& c, int operand, DType dtype, int64_t rows, std::string_view what) {
  if (c.type(operand) != Type{dtype, {rows}})
    c.fail("operand {} is {}; {} must be {}[{}], one per row", operand, to_string(c.type(operand)), what,
           name_of(dtype), rows);
}

void require_columns(const InferContext& c, int64_t columns) {
  const int64_t first = c.attributes().integer("first"), classes = c.attributes().integer("classes");
  if (columns < 1 || first < 0 || first + columns > classes)
    c.fail("the {} columns from {} on are no part of {} classes", columns, first, classes);
}

int leaves_of(const Attributes& attributes) { return static_cast<int>(attributes.integer("leaves")); }

std::vector<Type> infer(const InferContext& c) {
  const int64_t size = group_size(c);
  const int leaves = leaves_of(c.attributes());
  if (leaves < 1 || (c.count() != leaves + 1 && c.count() != leaves + 2))
    c.fail("there are {} operands; give the logits of {} leaves, labels, and weights if there are any",
           c.count(), leaves);
  c.require_floating(0);
  if (c.shape(0).rank() != 2) c.fail("operand 0 must be [rows, classes]; reshape the leading axes into one");
  for (int i = 1; i < leaves; ++i) c.require_same_type(i, 0);
  const int64_t rows = c.shape(0)[0], columns = c.shape(0)[1];
  require_columns(c, leaves * columns);
  if (size * leaves * columns != c.attributes().integer("classes"))
    c.fail("{} leaves of {} columns with each of {} workers do not make {} classes", leaves, columns, size,
           c.attributes().integer("classes"));
  require_per_row(c, leaves, DType::kI32, rows, "labels");
  if (c.count() == leaves + 2) require_per_row(c, leaves + 1, DType::kF32, rows, "weights");
  require_smoothing(c);
  return {{DType::kF32, {}}, {DType::kI64, {}}, {DType::kF32, {rows}}};
}

std::vector<Value> gradient(GradientContext& c) {
  const auto leaves = static_cast<size_t>(leaves_of(c.attributes()));
  std::vector<Value> grads(c.needed.size());
  const bool weighted = c.needed.size() == leaves + 2;
  if (weighted && c.needed[leaves + 1])
    throw UserError("cross_entropy_leaves has no gradient for its weights");
  if (!c.grad().valid()) return grads;
  Attributes attributes = only(c.attributes(), {"ignore", "smoothing", "classes"});
  for (size_t i = 0; i < leaves; ++i) {
    const int64_t columns = c.type(c.in(0)).shape[1];
    attributes.set("first", c.attributes().integer("first") + static_cast<int64_t>(i) * columns);
    std::vector<Value> operands{c.grad(), c.node.inputs[i], c.node.inputs[leaves], c.out(2)};
    if (weighted) operands.push_back(c.node.inputs[leaves + 1]);
    grads[i] = c.graph.emit_all("cross_entropy_grad", operands, attributes).at(0);
  }
  return grads;
}

std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const auto leaves = static_cast<size_t>(leaves_of(node.attributes));
  Attributes attributes = only(node.attributes, {"ignore", "smoothing", "classes"});
  std::vector<Value> parts;
  for (size_t i = 0; i < leaves; ++i) {
    const int64_t columns = b.shape(inputs[0])[1];
    attributes.set("first", node.attributes.integer("first") + static_cast<int64_t>(i) * columns);
    parts.push_back(b.op("cross_entropy_part", {inputs[i], inputs[leaves]}, attributes));
  }
  Value all = leaves == 1 ? parts[0] : graph.emit_all("concat", parts, {{"axis", int64_t{0}}})[0];
  if (node.attributes.integer("size") > 1) all = b.op("all_gather", {all}, same_group(node.attributes));
  std::vector<Value> operands{all};
  operands.insert(operands.end(), inputs.begin() + static_cast<int64_t>(leaves), inputs.end());
  return graph.emit_all("cross_entropy_join", operands,
                        only(node.attributes, {"ignore", "smoothing", "classes"}));
}

std::vector<Type> infer_part(const InferContext& c) {
  c.require_floating(0);
  if (c.shape(0).rank() != 2) c.fail("operand 0 must be [rows, classes]; reshape the leading axes into one");
  require_columns(c, c.shape(0)[1]);
  require_per_row(c, 1, DType::kI32, c.shape(0)[0], "labels");
  require_smoothing(c);
  return {{DType::kF32, {1, statistics(c.attributes()), c.shape(0)[0]}}};
}

void reference_part(const ReferenceContext& c) {
  const RefTensor& logits = c.in(0);
  const int64_t rows = logits.shape()[0], columns = logits.shape()[1];
  const int64_t first = c.attributes.integer("first"), classes = c.attributes.integer("classes");
  const auto ignore = static_cast<double>(c.attributes.integer("ignore"));
  for (int64_t r = 0; r < rows; ++r) {
    const double label = c.in(1)[r];
    c.out()[kTotal * rows + r] = 1;
    if (label == ignore) continue;
    if (label < 0 || label >= static_cast<double>(classes))
      throw UserError(
          "cross_entropy_part: row {} has label {}; labels lie in [0, {}), or are {} to ignore the row", r,
          label, classes, ignore);
    const double* row = logits.data.data() + r * columns;
    const double highest = *std::max_element(row, row + columns);
    const double pivot = std::max(highest, kLowest);
    double total = 0, sum = 0;
    for (int64_t i = 0; i < columns; ++i) {
      total += std::exp(row[i] - pivot);
      sum += row[i];
    }
    const int64_t column = static_cast<int64_t>(label) - first;
    c.out()[kHighest * rows + r] = highest;
    c.out()[kTotal * rows + r] = total;
    c.out()[kTarget * rows + r] = column >= 0 && column < columns ? row[column] : 0.0;
    if (smooths(c.attributes)) c.out()[kSum * rows + r] = sum;
  }
}

std::vector<Value> decompose_part(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const Value x = b.cast(inputs[0], DType::kF32), labels = inputs[1];
  const Shape shape = b.shape(x);
  const Value columns =
      b.op("iota", {}, {{"shape", std::vector<int64_t>{1, shape[1]}}, {"axis", int64_t{1}}});
  const auto first = static_cast<double>(node.attributes.integer("first"));
  const Value own = b.sub(labels, b.constant_like(first, labels));
  const Value target = b.indicator("eq", b.reshape(own, {shape[0], 1}), columns);
  const Value highest = b.max(x, {1}, true);
  const Value pivot = b.op("maximum", {highest, b.constant_like(kLowest, highest)});
  std::vector<Value> found{b.reshape(highest, {shape[0]}), b.sum(b.exp(b.sub(x, pivot)), {1}),
                           b.sum(b.mul(x, target), {1})};
  if (smooths(node.attributes)) found.push_back(b.sum(x, {1}));
  const Value ignored = b.constant_like(static_cast<double>(node.attributes.integer("ignore")), labels);
  const Value counted = b.compare("ne", labels, ignored);
  std::vector<Value> parts;
  for (size_t i = 0; i < found.size(); ++i) {
    const Value none = b.constant_like(static_cast<int64_t>(i) == kTotal ? 1.0 : 0.0, found[i]);
    parts.push_back(b.reshape(b.where(counted, found[i], none), {1, 1, shape[0]}));
  }
  return graph.emit_all("concat", parts, {{"axis", int64_t{1}}});
}

std::vector<Type> infer_join(const InferContext& c) {
  const Shape& parts = c.shape(0);
  require_smoothing(c);
  if (c.type(0).dtype != DType::kF32 || parts.rank() != 3 || parts[0] < 1 ||
      parts[1] != statistics(c.attributes()))
    c.fail("operand 0 must be f32[leaves,{},rows], the results of cross_entropy_part one after another",
           statistics(c.attributes()));
  require_per_row(c, 1, DType::kI32, parts[2], "labels");
  if (c.count() == 3) require_per_row(c, 2, DType::kF32, parts[2], "weights");
  if (c.attributes().integer("classes") < parts[0])
    c.fail("{} leaves cannot have columns of {} classes", parts[0], c.attributes().integer("classes"));
  return {{DType::kF32, {}}, {DType::kI64, {}}, {DType::kF32, {parts[2]}}};
}

void reference_join(const ReferenceContext& c) {
  const RefTensor& parts = c.in(0);
  const int64_t leaves = parts.shape()[0], kinds = parts.shape()[1], rows = parts.shape()[2];
  const double smoothing = c.attributes.number("smoothing");
  const auto classes = static_cast<double>(c.attributes.integer("classes"));
  for (int64_t r = 0; r < rows; ++r) {
    if (c.in(1)[r] == static_cast<double>(c.attributes.integer("ignore"))) continue;
    const auto part = [&](int64_t leaf, int64_t kind) { return parts[(leaf * kinds + kind) * rows + r]; };
    double highest = part(0, kHighest);
    for (int64_t g = 1; g < leaves; ++g) highest = std::max(highest, part(g, kHighest));
    double total = 0, target = 0, sum = 0;
    for (int64_t g = 0; g < leaves; ++g) {
      total += part(g, kTotal) * std::exp(part(g, kHighest) - highest);
      target += part(g, kTarget);
      if (smoothing != 0) sum += part(g, kSum);
    }
    const double lse = highest + std::log(total);
    const double weight = c.inputs.size() == 3 ? c.in(2)[r] : 1.0;
    c.out(2)[r] = lse;
    c.out(0)[0] += weight * (lse - (1 - smoothing) * target - smoothing * sum / classes);
    c.out(1)[0] += 1;
  }
}

std::vector<Value> decompose_join(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const Shape shape = b.shape(inputs[0]);
  const int64_t leaves = shape[0], rows = shape[2];
  const auto part = [&](int64_t leaf, int64_t kind) {
    return b.reshape(b.slice(b.slice(inputs[0], 0, leaf, leaf + 1), 1, kind, kind + 1), {rows});
  };
  const auto sum_of = [&](const auto& term) {
    std::vector<Value> terms;
    for (int64_t g = 0; g < leaves; ++g) terms.push_back(term(g));
    return graph.emit_all("leaf_sum", terms)[0];
  };
  const double smoothing = node.attributes.number("smoothing");
  Value highest = part(0, kHighest);
  for (int64_t g = 1; g < leaves; ++g) highest = b.op("maximum", {highest, part(g, kHighest)});
  const Value total =
      sum_of([&](int64_t g) { return b.mul(part(g, kTotal), b.exp(b.sub(part(g, kHighest), highest))); });
  const Value target = sum_of([&](int64_t g) { return part(g, kTarget); });
  const Value log_total = b.log(total);
  // Differences from the maximum are taken first: they are exact where the loss is small.
  Value term = b.add(log_total, b.scale(b.sub(highest, target), 1 - smoothing));
  if (smoothing != 0) {
    const Value sum = sum_of([&](int64_t g) { return part(g, kSum); });
    const Value mean = b.scale(sum, 1 / static_cast<double>(node.attributes.integer("classes")));
    term = b.add(term, b.scale(b.sub(highest, mean), smoothing));
  }
  if (inputs.size() == 3) term = b.mul(term, inputs[2]);
  const Value ignored = b.constant_like(static_cast<double>(node.attributes.integer("ignore")), inputs[1]);
  const Value counted = b.indicator("ne", inputs[1], ignored);
  return {b.sum(b.mul(term, counted), {0}), b.cast(b.sum(counted, {0}), DType::kI64),
          b.mul(b.add(highest, log_total), counted)};
}

// An exponential counts as ten operations.
Cost cost(const Graph& graph, const Node& node) {
  double elements = 0;
  for (const Value input : node.inputs)
    if (is_floating(graph.type(input).dtype))
      elements += static_cast<double>(graph.type(input).shape.numel());
  return {13.0 * elements, touched_bytes(graph, node)};
}

}  // namespace

OpDef cross_entropy_leaves_op() {
  OpDef def{.name = "cross_entropy_leaves", .summary = "cross_entropy of logits that leaves have columns of"};
  def.attributes =
      label_attributes() + column_attributes() +
      std::vector<AttributeDef>{{"leaves", int64_t{1}, "this worker's", true},
                                {"group", std::string("tensor"), "the workers that share leaves"},
                                {"size", int64_t{1}, "how many they are"}};
  def.min_inputs = 2;
  def.max_inputs = OpDef::kVariadic;
  def.traits = {.reduction = true};
  def.infer = infer;
  def.gradient = gradient;
  def.decompose = decompose;
  def.sharding = [](const Graph&, const Node& node) {
    return shard_rows(1, std::string(node.inputs.size(), 'r'), "ppr");
  };
  def.cost = cost;
  return def;
}

OpDef cross_entropy_part_op() {
  OpDef def{.name = "cross_entropy_part", .summary = "what a leaf's columns add to a cross_entropy, by row"};
  def.attributes = label_attributes() + column_attributes();
  def.min_inputs = def.max_inputs = 2;
  def.traits = {.reduction = true};
  def.infer = infer_part;
  def.reference = reference_part;
  def.decompose = decompose_part;
  def.sharding = [](const Graph&, const Node&) {
    const Placement r = Placement::replicate(), rows = Placement::split(0);
    return std::vector<ShardingSignature>{{{r, r}, {r}}, {{rows, rows}, {Placement::split(2)}}};
  };
  def.cost = cost;
  return def;
}

OpDef cross_entropy_join_op() {
  OpDef def{.name = "cross_entropy_join", .summary = "cross_entropy out of what all leaves add to it"};
  def.attributes = label_attributes();
  def.attributes.push_back({"classes", int64_t{0}, "of the columns of all leaves", true});
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.traits = {.reduction = true};
  def.infer = infer_join;
  def.reference = reference_join;
  def.decompose = decompose_join;
  def.sharding = [](const Graph&, const Node& node) {
    const Placement r = Placement::replicate(), p = Placement::partial(), rows = Placement::split(0);
    std::vector<ShardingSignature> signatures{{{r, r}, {r, r, r}},
                                              {{Placement::split(2), rows}, {p, p, rows}}};
    if (node.inputs.size() == 3) {
      signatures[0].inputs.push_back(r);
      signatures[1].inputs.push_back(rows);
    }
    return signatures;
  };
  def.cost = cost;
  return def;
}

}  // namespace lockstep
