// row_gradient(dy, ids): the gradient of a table of which a step touches few rows, as the touched rows alone.
//
// dy has a row of C per id. row_ids i32[n] lists the rows in rising order, then -1; row_grads f32[n,C] holds
// for each the sum of its rows of dy in order, and zero beyond. Ids of -1 are padding and count for nothing.
#include <algorithm>
#include <map>

#include "ops/row_ids.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  const int64_t rows = c.attributes().integer("rows");
  if (rows < 1) c.fail("rows must be the number of rows of the table");
  require_ids(c, 1, rows);
  const Shape& dy = c.shape(0);
  if (c.type(0).dtype != DType::kF32) c.fail("dy must be f32; cast it");
  if (dy.rank() < 1 || dy.without(dy.rank() - 1) != c.shape(1))
    c.fail("dy must have the shape of ids and one more axis, the columns of the table");
  const int64_t n = c.shape(1).numel();
  return {{DType::kI32, {n}}, {DType::kF32, {n, dy[-1]}}};
}

void reference(const ReferenceContext& c) {
  const int64_t columns = c.in(0).type.shape[-1];
  std::map<int64_t, std::vector<double>> rows;
  for (int64_t i = 0; i < c.in(1).numel(); ++i) {
    if (c.in(1)[i] == -1.0) continue;
    const int64_t id = checked_id("row_gradient", c.in(1), i, c.attributes.integer("rows"));
    std::vector<double>& sum = rows.try_emplace(id, static_cast<size_t>(columns), 0.0).first->second;
    for (int64_t k = 0; k < columns; ++k) sum[static_cast<size_t>(k)] += c.in(0)[i * columns + k];
  }
  std::fill(c.out(0).data.begin(), c.out(0).data.end(), -1.0);
  int64_t unit = 0;
  for (const auto& [id, sum] : rows) {
    c.out(0)[unit] = static_cast<double>(id);
    std::copy(sum.begin(), sum.end(), c.out(1).data.begin() + unit * columns);
    ++unit;
  }
}

}  // namespace

OpDef row_gradient_op() {
  OpDef def{.name = "row_gradient", .summary = "sum of rows with equal ids, as a list of unique rows"};
  def.attributes = {{"rows", int64_t{0}, "rows of the table that ids point into", true}};
  def.min_inputs = def.max_inputs = 2;
  def.traits = {.reduction = true};
  def.infer = infer;
  def.reference = reference;
  def.sharding = [](const Graph&, const Node&) {
    return std::vector<ShardingSignature>{{std::vector<Placement>(2), std::vector<Placement>(2)}};
  };
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{static_cast<double>(graph.type(node.inputs[0]).shape.numel()), touched_bytes(graph, node)};
  };
  return def;
}

}  // namespace lockstep
