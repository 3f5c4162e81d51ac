#include "model/leaf_cuts.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/nearest.h"
#include "graph/text.h"

namespace lockstep {
namespace {

using Placed = Placement::Kind;

// Ops that only move elements about.
constexpr std::array<std::string_view, 5> kMovers = {"broadcast", "reshape", "cast", "transpose", "constant"};

bool moves(const Node& node) { return std::ranges::find(kMovers, node.op->name) != kMovers.end(); }

std::vector<ShardingSignature> signatures_of(const Graph& graph, const Node& node) {
  if (node.op->sharding == nullptr) return {};
  return node.op->sharding(graph, node);
}

// A cut goes through an op that keeps the axis; another extent there is dealt out as one.
std::optional<LeafCut> cut_through(const LeafCut& from, int64_t from_extent, int axis, int64_t extent) {
  if (extent == from_extent) return LeafCut{axis, from.segments};
  if (from.segments.size() > 1) return std::nullopt;
  return LeafCut{axis, {extent}};
}

std::vector<int64_t> packed_widths(const Graph& graph, const Node& node) {
  const int64_t heads = node.attributes.integer("heads"), kv_heads = node.attributes.integer("kv_heads");
  const int64_t width = graph.type(node.inputs[0]).shape[2] / (heads + 2 * kv_heads);
  return {heads * width, kv_heads * width, kv_heads * width};
}

}  // namespace

LeafCuts::LeafCuts(const Graph& graph, int64_t leaves) : graph_(graph), leaves_(leaves) {
  find_on_demand();
  while (!place_all()) {
  }
  bool products = false;
  for (size_t n = 0; n < kinds_.size(); ++n)
    products |= kinds_[n] == Kind::kRows && graph.nodes()[n].op->name == "matmul";
  if (!products)
    throw UserError(
        "strategy.tensor_leaves {}: graph {} has no products by columns and rows of parameters that follow "
        "each other, so tensor parallelism has nothing to split; use strategy.tensor 1 and no tensor_leaves",
        leaves, graph.name());
  require_even();
}

void LeafCuts::find_on_demand() {
  on_demand_.assign(static_cast<size_t>(graph_.value_count()), false);
  const auto is = [&](Value value) { return on_demand(value); };
  for (const GraphInput& input : graph_.inputs())
    on_demand_[static_cast<size_t>(input.value.id)] =
        input.role == Role::kParam || input.role == Role::kFrozen;
  for (const Node& node : graph_.nodes())
    if (moves(node) && std::ranges::all_of(node.inputs, is))
      for (const Value output : node.outputs) on_demand_[static_cast<size_t>(output.id)] = true;
}

bool LeafCuts::place_all() {
  const auto nodes = static_cast<int32_t>(graph_.nodes().size());
  kinds_.assign(static_cast<size_t>(nodes), Kind::kWhole);
  cuts_.assign(static_cast<size_t>(graph_.value_count()), {});
  operands_.assign(static_cast<size_t>(nodes), {});
  read_whole_.clear();
  read_cut_.clear();
  again_ = false;
  for (int32_t n = 0; n < nodes && !again_; ++n) place(n);
  for (const GraphOutput& output : graph_.outputs()) {
    if (again_) break;
    if (on_demand(output.value)) use_whole(output.value, -1);
    if (!cut(output.value).is_cut()) continue;
    left_whole_.merge(columns_before(graph_.producer(output.value)));
    again_ = true;
  }
  return !again_;
}

bool LeafCuts::has_cut_operand(const Node& node) const {
  return std::ranges::any_of(node.inputs,
                             [&](Value value) { return !on_demand(value) && cut(value).is_cut(); });
}

void LeafCuts::place(int32_t n) {
  const Node& node = graph_.nodes()[static_cast<size_t>(n)];
  if (std::ranges::all_of(node.outputs, [&](Value output) { return on_demand(output); })) {
    kinds_[static_cast<size_t>(n)] = Kind::kOnDemand;
    return;
  }
  if (place_product(n) || place_embedding(n) || again_) return;
  if (!has_cut_operand(node)) {
    for (const Value input : node.inputs)
      if (on_demand(input)) use_whole(input, n);
    return;
  }
  if (place_packed_attention(n) || place_slice(n) || place_loss(n) || again_ || place_by_signature(n)) return;
  left_whole_.merge(columns_before(n));
  again_ = true;
}

// A product with a parameter: by columns where a whole value comes, by rows where a cut one does.
bool LeafCuts::place_product(int32_t n) {
  const Node& node = graph_.nodes()[static_cast<size_t>(n)];
  if (node.op->name != "matmul" || node.inputs.size() != 2) return false;
  const Value a = node.inputs[0], b = node.inputs[1];
  if (on_demand(a) || !on_demand(b) || graph_.type(b).shape.rank() != 2) return false;
  const bool transposed = node.attributes.flag("transpose_b");
  const int last = graph_.type(a).shape.rank() - 1;
  const LeafCut& given = cut(a);
  if (given.is_cut()) {
    if (given.axis != last || node.attributes.flag("transpose_a")) return false;
    const LeafCut rows{transposed ? 1 : 0, given.segments};
    if (!can_demand(b, rows)) return false;
    demand(b, rows, n);
    kinds_[static_cast<size_t>(n)] = Kind::kRows;
    operands_[static_cast<size_t>(n)] = {given, rows};
    return true;
  }
  if (left_whole_.contains(n)) return false;
  const int axis = transposed ? 0 : 1;
  const auto segments = segments_.find(n);
  const LeafCut columns{axis, segments != segments_.end() ? segments->second
                                                          : std::vector<int64_t>{graph_.type(b).shape[axis]}};
  if (!can_demand(b, columns)) {
    left_whole_.insert(n);
    return false;
  }
  demand(b, columns, n);
  kinds_[static_cast<size_t>(n)] = Kind::kLeaves;
  operands_[static_cast<size_t>(n)] = {{}, columns};
  cuts_[static_cast<size_t>(node.outputs[0].id)] = {graph_.type(node.outputs[0]).shape.rank() - 1,
                                                    columns.segments};
  return true;
}

bool LeafCuts::can_cut_vocabulary(int64_t rows, int64_t columns) const {
  return rows % leaves_ == 0 && rows >= columns;
}

bool LeafCuts::place_embedding(int32_t n) {
  const Node& node = graph_.nodes()[static_cast<size_t>(n)];
  if (node.op->name != "embedding" || left_whole_.contains(n)) return false;
  const Value table = node.inputs[0];
  if (!on_demand(table) || cut(node.inputs[1]).is_cut()) return false;
  const Shape& shape = graph_.type(table).shape;
  const LeafCut rows{0, {shape[0]}};
  if (!can_cut_vocabulary(shape[0], shape[1])) return false;
  if (!can_demand(table, rows)) {
    left_whole_.insert(n);
    return false;
  }
  demand(table, rows, n);
  kinds_[static_cast<size_t>(n)] = Kind::kRows;
  operands_[static_cast<size_t>(n)] = {rows, {}};
  return true;
}

bool LeafCuts::place_loss(int32_t n) {
  const Node& node = graph_.nodes()[static_cast<size_t>(n)];
  if (node.op->name != "cross_entropy" || !cut(node.inputs[0]).is_cut()) return false;
  const int64_t classes = graph_.type(node.inputs[0]).shape[1];
  if (cut(node.inputs[0]) != LeafCut{1, {classes}}) return false;
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (on_demand(node.inputs[i]) || cut(node.inputs[i]).is_cut()) return false;
  for (const int32_t head : columns_before(n)) {
    const Value rows = graph_.nodes()[static_cast<size_t>(head)].inputs[0];
    if (!can_cut_vocabulary(classes, graph_.type(rows).shape[-1])) return false;
  }
  kinds_[static_cast<size_t>(n)] = Kind::kLoss;
  operands_[static_cast<size_t>(n)] = {cut(node.inputs[0])};
  return true;
}

void LeafCuts::set_segments(int32_t n, const std::vector<int64_t>& segments) {
  for (const int32_t product : columns_before(n)) {
    // What was given once and does not do is left whole.
    if (!segments_.emplace(product, segments).second) left_whole_.insert(product);
  }
  again_ = true;
}

bool LeafCuts::place_packed_attention(int32_t n) {
  const Node& node = graph_.nodes()[static_cast<size_t>(n)];
  if (node.op->name != "attention_qkv" || node.attributes.number("dropout") > 0) return false;
  const LeafCut& given = cut(node.inputs[0]);
  if (given.axis != 2) return false;
  const std::vector<int64_t> widths = packed_widths(graph_, node);
  if (given.segments != widths) {
    set_segments(n, widths);
    return true;
  }
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (cut(node.inputs[i]).is_cut()) return false;
  kinds_[static_cast<size_t>(n)] = Kind::kLeaves;
  operands_[static_cast<size_t>(n)].resize(node.inputs.size());
  operands_[static_cast<size_t>(n)][0] = given;
  cuts_[static_cast<size_t>(node.outputs[0].id)] = {2, {widths[0]}};
  cuts_[static_cast<size_t>(node.outputs[1].id)] = {1, {node.attributes.integer("heads")}};
  return true;
}

// A slice of the axis that is cut takes whole segments of it.
bool LeafCuts::place_slice(int32_t n) {
  const Node& node = graph_.nodes()[static_cast<size_t>(n)];
  if (node.op->name != "slice") return false;
  const LeafCut& given = cut(node.inputs[0]);
  const Shape& shape = graph_.type(node.inputs[0]).shape;
  const auto axis_of = [&](const Node& slice) {
    const int64_t axis = slice.attributes.integer("axis");
    return static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
  };
  if (axis_of(node) != given.axis) return false;
  const int64_t begin = node.attributes.integer("begin"), end = node.attributes.integer("end");
  std::vector<int64_t> taken;
  int64_t at = 0;
  for (const int64_t segment : given.segments) {
    if (at >= begin && at + segment <= end) taken.push_back(segment);
    at += segment;
  }
  int64_t sum = 0;
  for (const int64_t segment : taken) sum += segment;
  if (sum == end - begin) {
    kinds_[static_cast<size_t>(n)] = Kind::kLeaves;
    operands_[static_cast<size_t>(n)] = {given};
    cuts_[static_cast<size_t>(node.outputs[0].id)] = {given.axis, taken};
    return true;
  }
  std::set<int64_t> edges = {0, shape[given.axis]};
  for (const Node& other : graph_.nodes())
    if (other.op->name == "slice" && other.inputs[0] == node.inputs[0] && axis_of(other) == given.axis)
      edges.insert({other.attributes.integer("begin"), other.attributes.integer("end")});
  std::vector<int64_t> segments;
  for (auto edge = std::next(edges.begin()); edge != edges.end(); ++edge)
    segments.push_back(*edge - *std::prev(edge));
  set_segments(n, segments);
  return true;
}

bool LeafCuts::place_by_signature(int32_t n) {
  const Node& node = graph_.nodes()[static_cast<size_t>(n)];
  return std::ranges::any_of(signatures_of(graph_, node),
                             [&](const ShardingSignature& signature) { return accepts(n, signature); });
}

bool LeafCuts::accepts(int32_t n, const ShardingSignature& signature) {
  const Node& node = graph_.nodes()[static_cast<size_t>(n)];
  LeafCut through;
  int64_t extent = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const LeafCut& given = cut(node.inputs[i]);
    if (on_demand(node.inputs[i]) || !given.is_cut()) continue;
    if (signature.inputs[i] != Placement::split(given.axis)) return false;
    if (through.is_cut() && through.segments.size() * given.segments.size() != 1 &&
        through.segments != given.segments)
      return false;
    through = given;
    extent = graph_.type(node.inputs[i]).shape[given.axis];
  }
  std::vector<LeafCut> operands(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Placement placement = signature.inputs[i];
    if (placement.kind == Placed::kReplicate) continue;
    if (placement.kind == Placed::kPartial) return false;
    const Value value = node.inputs[i];
    if (!on_demand(value)) {
      if (!cut(value).is_cut()) return false;
      operands[i] = cut(value);
      continue;
    }
    const auto demanded =
        cut_through(through, extent, placement.axis, graph_.type(value).shape[placement.axis]);
    if (!demanded || !can_demand(value, *demanded)) return false;
    operands[i] = *demanded;
  }
  std::vector<LeafCut> results;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Placement placement = signature.outputs[i];
    if (placement.kind != Placed::kSplit) return false;
    const auto result =
        cut_through(through, extent, placement.axis, graph_.type(node.outputs[i]).shape[placement.axis]);
    if (!result) return false;
    results.push_back(*result);
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!on_demand(node.inputs[i])) continue;
    if (operands[i].is_cut())
      demand(node.inputs[i], operands[i], n);
    else
      use_whole(node.inputs[i], n);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    cuts_[static_cast<size_t>(node.outputs[i].id)] = results[i];
  kinds_[static_cast<size_t>(n)] = Kind::kLeaves;
  operands_[static_cast<size_t>(n)] = std::move(operands);
  return true;
}

std::vector<LeafCut> LeafCuts::operands_on_demand(const Node& node, const LeafCut& result) const {
  const int64_t extent = graph_.type(node.outputs[0]).shape[result.axis];
  for (const ShardingSignature& signature : signatures_of(graph_, node)) {
    if (signature.outputs[0] != Placement::split(result.axis)) continue;
    std::vector<LeafCut> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Placement placement = signature.inputs[i];
      if (placement.kind == Placed::kReplicate) {
        operands.emplace_back();
        continue;
      }
      const auto through = placement.kind == Placed::kPartial
                               ? std::nullopt
                               : cut_through(result, extent, placement.axis,
                                             graph_.type(node.inputs[i]).shape[placement.axis]);
      if (!through) break;
      operands.push_back(*through);
    }
    if (operands.size() == node.inputs.size()) return operands;
  }
  return {};
}

bool LeafCuts::can_demand(Value value, const LeafCut& wanted) const {
  const int32_t producer = graph_.producer(value);
  if (producer < 0) {
    const auto reader = read_cut_.find(value.id);
    if (reader != read_cut_.end() && cut(value) != wanted) return false;
    return !read_whole_.contains(value.id);
  }
  const Node& node = graph_.nodes()[static_cast<size_t>(producer)];
  if (node.inputs.empty()) return true;
  const std::vector<LeafCut> operands = operands_on_demand(node, wanted);
  if (operands.empty()) return false;
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].is_cut() && !can_demand(node.inputs[i], operands[i])) return false;
  return true;
}

void LeafCuts::demand(Value value, const LeafCut& wanted, int32_t by) {
  const int32_t producer = graph_.producer(value);
  if (producer < 0) {
    read_cut_[value.id].push_back(by);
    cuts_[static_cast<size_t>(value.id)] = wanted;
    return;
  }
  const Node& node = graph_.nodes()[static_cast<size_t>(producer)];
  const std::vector<LeafCut> operands = operands_on_demand(node, wanted);
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].is_cut())
      demand(node.inputs[i], operands[i], by);
    else
      use_whole(node.inputs[i], by);
}

// A parameter that somebody else has cut is left whole there, too.
void LeafCuts::use_whole(Value value, int32_t by) {
  const int32_t producer = graph_.producer(value);
  if (producer >= 0) {
    for (const Value input : graph_.nodes()[static_cast<size_t>(producer)].inputs) use_whole(input, by);
    return;
  }
  read_whole_[value.id].push_back(by);
  const auto found = read_cut_.find(value.id);
  if (found == read_cut_.end()) return;
  for (const int32_t reader : found->second) left_whole_.merge(columns_before(reader));
  again_ = true;
}

std::set<int32_t> LeafCuts::columns_before(int32_t n) const {
  std::set<int32_t> columns, seen;
  std::vector<int32_t> left = {n};
  while (!left.empty()) {
    const int32_t at = left.back();
    left.pop_back();
    if (at < 0 || !seen.insert(at).second) continue;
    const Node& node = graph_.nodes()[static_cast<size_t>(at)];
    if (node.op->name == "embedding" && kind(at) == Kind::kRows) {
      columns.insert(at);
      continue;
    }
    if (node.op->name == "matmul" && kind(at) == Kind::kLeaves && operands(at)[1].is_cut() &&
        !operands(at)[0].is_cut()) {
      columns.insert(at);
      continue;
    }
    for (const Value input : node.inputs)
      if (!on_demand(input) && cut(input).is_cut()) left.push_back(graph_.producer(input));
  }
  LOCKSTEP_CHECK(!columns.empty(), "no region is before {}",
                 to_text(graph_, graph_.nodes()[static_cast<size_t>(n)]));
  return columns;
}

std::string LeafCuts::weight_of(int32_t product) const {
  Value value = graph_.nodes()[static_cast<size_t>(product)].inputs[1];
  while (graph_.producer(value) >= 0)
    value = graph_.nodes()[static_cast<size_t>(graph_.producer(value))].inputs[0];
  return graph_.name(value);
}

void LeafCuts::require_even() const {
  for (int32_t n = 0; n < static_cast<int32_t>(graph_.nodes().size()); ++n) {
    if (kind(n) != Kind::kLeaves) continue;
    const Node& node = graph_.nodes()[static_cast<size_t>(n)];
    if (node.op->name == "attention_qkv")
      for (const char* which : {"heads", "kv_heads"}) require_even(n, node.attributes.integer(which), which);
    const LeafCut& given = cut(node.outputs[0]);
    const bool columns = given.axis == graph_.type(node.outputs[0]).shape.rank() - 1;
    for (const int64_t segment : given.segments) require_even(n, segment, columns ? "columns" : "heads");
  }
}

void LeafCuts::require_even(int32_t n, int64_t extent, std::string_view what) const {
  if (extent % leaves_ == 0) return;
  throw UserError("strategy.tensor_leaves {} does not divide the {} {} that {} makes; use {}", leaves_,
                  extent, what, weight_of(*columns_before(n).begin()),
                  fmt::join(nearest_divisors(extent, leaves_), " or "));
}

}  // namespace lockstep
