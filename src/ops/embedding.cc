// embedding(table, ids) {padding}: rows of table [V,C] by ids [...], giving [..., C]. An id outside [0, V) is
// an error at run time that names its place. The row of the id `padding` has no gradient from here.
//
// embedding_grad(dy, ids[, into]) {rows}: the table's gradient [rows, C]: each row is the sum of its
// positions' dy in index order, zero where no id points; with `into` that sum is added to it, in place, and
// other rows are not touched.
//
// A part of a table has the rows from `first` on of the `whole` that ids count: ids of others give zeros, and
// no gradient. Parts of a table together give what the table does, as a sum in which one term is not zero.
#include "ops/builder.h"
#include "ops/row_ids.h"

namespace lockstep {
namespace {

std::vector<AttributeDef> part_attributes() {
  return {{"first", int64_t{0}, "of a part of a table: its first row"},
          {"whole", int64_t{0}, "of a part of a table: rows of all parts; 0: the table is whole"}};
}

bool is_part(const Attributes& attributes) { return attributes.integer("whole") > 0; }

// The rows that ids may name, of an operand with so many.
int64_t all_rows(const Attributes& attributes, int64_t rows) {
  return is_part(attributes) ? attributes.integer("whole") : rows;
}

void require_part(const InferContext& c, int64_t rows) {
  const int64_t first = c.attributes().integer("first"), whole = c.attributes().integer("whole");
  if (whole < 0 || first < 0 || (whole == 0 ? first > 0 : first + rows > whole))
    c.fail("the {} rows from {} on are no part of {}; give the first row and the rows of the whole table",
           rows, first, whole);
}

std::vector<Type> infer(const InferContext& c) {
  if (c.shape(0).rank() != 2) c.fail("the table must be [V,C], it has {} axes", c.shape(0).rank());
  require_part(c, c.shape(0)[0]);
  const int64_t rows = all_rows(c.attributes(), c.shape(0)[0]);
  require_ids(c, 1, rows);
  if (const int64_t padding = c.attributes().integer("padding"); padding < -1 || padding >= rows)
    c.fail("padding is {}; write -1 for none, or an id of the {} rows", padding, rows);
  const Shape& ids = c.shape(1);
  if (ids.rank() == Shape::kMaxRank) c.fail("ids have too many axes for one more");
  std::vector<int64_t> extents(ids.begin(), ids.end());
  extents.push_back(c.shape(0)[1]);
  return {{c.type(0).dtype, Shape(extents)}};
}

std::vector<Value> gradient(GradientContext& c) {
  Value dy = c.grad();
  if (const int64_t padding = c.attributes().integer("padding"); padding >= 0) {
    Builder b(c.graph);
    const Shape ids = b.shape(c.in(1));
    const Value none = b.constant(static_cast<double>(padding), {b.type(c.in(1)).dtype, {}});
    std::vector<int64_t> extents(ids.begin(), ids.end());
    extents.push_back(1);
    const Value counts = b.reshape(b.indicator("ne", c.in(1), none), Shape(extents));
    dy = b.mul(dy, b.cast(counts, b.type(dy).dtype));
  }
  return {c.graph.emit("embedding_grad", {dy, c.in(1)},
                       {{"rows", c.type(c.in(0)).shape[0]},
                        {"first", c.attributes().integer("first")},
                        {"whole", c.attributes().integer("whole")}}),
          Value{}};
}

void reference(const ReferenceContext& c) {
  const int64_t rows = c.in(0).shape()[0];
  const int64_t width = c.in(0).shape()[1];
  for (int64_t i = 0; i < c.in(1).numel(); ++i) {
    const int64_t id =
        checked_id("embedding", c.in(1), i, all_rows(c.attributes, rows)) - c.attributes.integer("first");
    if (id < 0 || id >= rows) continue;
    for (int64_t j = 0; j < width; ++j) c.out()[i * width + j] = c.in(0)[id * width + j];
  }
}

// A part as a table of bags of one id or none: as ids of its own rows [N,1], -1 for those of other parts.
// Nothing looks for ids of no part.
Value bags_of_part(Builder& b, const Attributes& attributes, int64_t rows, Value ids) {
  const Value first = b.constant_like(static_cast<double>(attributes.integer("first")), ids);
  const Value none = b.constant_like(-1, ids), end = b.constant_like(static_cast<double>(rows), ids);
  const Value own = b.sub(ids, first);
  const Value bags = b.where(b.compare("lt", own, end), b.op("maximum", {own, none}), none);
  return b.reshape(bags, {b.shape(ids).numel(), 1});
}

std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  if (is_part(node.attributes)) {
    Builder b(graph);
    const Value bags = bags_of_part(b, node.attributes, b.shape(inputs[0])[0], inputs[1]);
    std::vector<int64_t> extents(b.shape(inputs[1]).begin(), b.shape(inputs[1]).end());
    extents.push_back(b.shape(inputs[0])[1]);
    return {b.reshape(b.op("embedding_bag", {inputs[0], bags}), Shape(extents))};
  }
  return {graph.emit("gather", {inputs[0], inputs[1]}, {{"axis", int64_t{0}}})};
}

std::vector<Value> decompose_grad(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const Type table{b.type(inputs[0]).dtype, {node.attributes.integer("rows"), b.shape(inputs[0])[-1]}};
  if (is_part(node.attributes)) {
    const Value bags = bags_of_part(b, node.attributes, table.shape[0], inputs[1]);
    const Value dy = b.reshape(inputs[0], {b.shape(bags)[0], table.shape[1]});
    const Value sums = b.op("embedding_bag_grad", {dy, bags}, {{"rows", table.shape[0]}});
    return {inputs.size() == 3 ? b.add(inputs[2], sums) : sums};
  }
  const Value sums =
      b.op("scatter_add", {b.constant(0, table), inputs[1], inputs[0]}, {{"axis", int64_t{0}}});
  return {inputs.size() == 3 ? b.add(inputs[2], sums) : sums};
}

// By ids, or by columns of the table.
std::vector<ShardingSignature> sharding(const Graph& graph, const Node& node) {
  const Placement r = Placement::replicate();
  const int rank = graph.type(node.inputs[1]).shape.rank();
  std::vector<ShardingSignature> result{{{r, r}, {r}}, {{Placement::split(1), r}, {Placement::split(rank)}}};
  for (int axis = 0; axis < rank; ++axis)
    result.push_back({{r, Placement::split(axis)}, {Placement::split(axis)}});
  return result;
}

std::vector<Type> infer_grad(const InferContext& c) {
  const int64_t rows = c.attributes().integer("rows");
  if (rows < 1) c.fail("rows is {}; it is the number of rows of the table", rows);
  c.require_floating(0);
  require_part(c, rows);
  require_ids(c, 1, all_rows(c.attributes(), rows));
  const Shape& dy = c.shape(0);
  const Shape& ids = c.shape(1);
  if (dy.rank() != ids.rank() + 1 || dy.without(dy.rank() - 1) != ids)
    c.fail("operand 0 must have the shape of ids and one more axis, the table's columns");
  const Type result{c.type(0).dtype, {rows, dy[-1]}};
  if (c.count() == 3 && c.type(2) != result)
    c.fail("operand 2, which is accumulated into, must be {}", to_string(result));
  return {result};
}

void reference_grad(const ReferenceContext& c) {
  const int64_t width = c.out().shape()[1];
  const int64_t rows = c.out().shape()[0];
  for (int64_t i = 0; i < c.in(1).numel(); ++i) {
    const int64_t id = checked_id("embedding_grad", c.in(1), i, all_rows(c.attributes, rows)) -
                       c.attributes.integer("first");
    if (id < 0 || id >= rows) continue;
    for (int64_t j = 0; j < width; ++j) c.out()[id * width + j] += c.in(0)[i * width + j];
  }
  if (c.inputs.size() < 3) return;
  for (int64_t i = 0; i < c.out().numel(); ++i) c.out()[i] += c.in(2)[i];
}

std::vector<ShardingSignature> sharding_grad(const Graph& graph, const Node& node) {
  const Placement r = Placement::replicate();
  const int rank = graph.type(node.inputs[1]).shape.rank();
  std::vector<ShardingSignature> result{{{r, r}, {r}}, {{Placement::split(rank), r}, {Placement::split(1)}}};
  for (int axis = 0; axis < rank; ++axis)
    result.push_back({{Placement::split(axis), Placement::split(axis)}, {Placement::partial()}});
  for (ShardingSignature& signature : result)
    if (node.inputs.size() == 3) signature.inputs.push_back(signature.outputs[0]);
  return result;
}

}  // namespace

OpDef embedding_op() {
  OpDef def{.name = "embedding", .summary = "rows of a table by id"};
  def.attributes = part_attributes();
  def.attributes.push_back({"padding", int64_t{-1}, "an id whose row has no gradient; -1 means none"});
  def.min_inputs = def.max_inputs = 2;
  def.traits = {.recompute_cheap = true};
  def.infer = infer;
  def.gradient = gradient;
  def.reference = reference;
  def.decompose = decompose;
  def.sharding = sharding;
  def.cost = [](const Graph& graph, const Node& node) {
    const auto moved = 2 * graph.type(node.outputs[0]).bytes() + graph.type(node.inputs[1]).bytes();
    return Cost{0, static_cast<double>(moved)};
  };
  return def;
}

OpDef embedding_grad_op() {
  OpDef def{.name = "embedding_grad", .summary = "gradient of an embedding table, summed in index order"};
  def.attributes = part_attributes();
  def.attributes.push_back({"rows", int64_t{0}, "rows of the table", true});
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.traits = {.reduction = true};
  def.infer = infer_grad;
  def.reference = reference_grad;
  def.decompose = decompose_grad;
  def.sharding = sharding_grad;
  def.cost = [](const Graph& graph, const Node& node) {
    const Type& dy = graph.type(node.inputs[0]);
    // Accumulating touches the rows that ids name, three passes over as many bytes as dy at most.
    const double accumulated = static_cast<double>(3 * dy.bytes() + graph.type(node.inputs[1]).bytes());
    const double bytes = node.inputs.size() == 3 ? accumulated : touched_bytes(graph, node);
    return Cost{static_cast<double>(dy.shape.numel()), bytes};
  };
  def.inplace = {{2, 0}};
  return def;
}

}  // namespace lockstep
