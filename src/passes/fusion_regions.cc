#include "passes/fusion_regions.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "graph/op_def.h"
#include "ops/fused.h"
#include "ops/reduce_axes.h"
#include "passes/loss_node.h"

namespace lockstep {
namespace {

constexpr size_t kMaxStatements = 64;
// How far apart in program order nodes may be. Bounds compile time, and how long a fused node's operands are
// kept waiting for its last one. Nodes that merely read the same tensor gain less from running together.
constexpr int32_t kProducerWindow = 256;
constexpr int32_t kSiblingWindow = 24;
// Sums down narrow columns ask for their terms in pieces too small to be worth a tile.
constexpr int64_t kNarrowestColumns = 16;

int32_t first_of(const FusionRegion& region) { return region.nodes.front(); }
int32_t last_of(const FusionRegion& region) { return std::max(region.nodes.back(), region.sum); }

bool has(const FusionRegion& region, int32_t node) {
  return node == region.sum || std::binary_search(region.nodes.begin(), region.nodes.end(), node);
}

FusionRegion merged_of(const FusionRegion& a, const FusionRegion& b) {
  FusionRegion merged{a.shape, {}, std::max(a.sum, b.sum)};
  std::merge(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
             std::back_inserter(merged.nodes));
  return merged;
}

}  // namespace

Value before_broadcasts(const Graph& graph, Value value) {
  for (;;) {
    const int32_t producer = graph.producer(value);
    if (producer < 0 || graph.nodes()[static_cast<size_t>(producer)].op->name != "broadcast") return value;
    value = graph.nodes()[static_cast<size_t>(producer)].inputs[0];
  }
}

const Node* constant_behind(const Graph& graph, Value value) {
  const int32_t producer = graph.producer(before_broadcasts(graph, value));
  if (producer < 0) return nullptr;
  const Node& node = graph.nodes()[static_cast<size_t>(producer)];
  return node.op->name == "constant" ? &node : nullptr;
}

FusionRegions::FusionRegions(const Graph& graph, const PassOptions& options)
    : graph_(graph),
      options_(options),
      users_(users_of(graph)),
      is_output_(static_cast<size_t>(graph.value_count()), false),
      loss_(loss_node(graph)),
      region_of_(graph.nodes().size(), -1) {
  for (const GraphOutput& output : graph.outputs()) is_output_[static_cast<size_t>(output.value.id)] = true;
  for (int32_t index = 0; index < static_cast<int32_t>(graph.nodes().size()); ++index) {
    if (node(index).op->scalar != nullptr && is_candidate(node(index))) add_pointwise(index);
    if (node(index).op->name == "sum" || node(index).op->name == "mean") add_sum(index);
  }
}

void FusionRegions::explain(const std::string& line) const {
  if (options_.explain) options_.explain("fusion", line);
}

// Fused programs compute in f32, which would round whole numbers; they may only enter through a cast.
bool FusionRegions::is_candidate(const Node& node) const {
  const auto carried = [](DType dtype) { return is_floating(dtype) || dtype == DType::kBool; };
  const Type& out = graph_.type(node.outputs[0]);
  bool fits = carried(out.dtype);
  for (const Value input : node.inputs) {
    const DType dtype = graph_.type(input).dtype;
    const bool enters = node.op->name == "cast" && dtype != DType::kI64 && is_floating(out.dtype);
    fits = fits && (carried(dtype) || enters);
  }
  if (!fits)
    explain(fmt::format("{} stays alone: whole numbers are computed exactly", graph_.name(node.outputs[0])));
  return fits && out.shape.numel() > 0;
}

// Joins the regions of the node's producers, then those that read the same tensors: together they read them
// once.
void FusionRegions::add_pointwise(int32_t index) {
  region_of_[static_cast<size_t>(index)] = static_cast<int>(regions_.size());
  regions_.push_back({graph_.type(node(index).outputs[0]).shape, {index}, -1});
  std::vector<int> refused;
  const auto join = [&](int32_t other, int32_t window) {
    const int from = region_of(other);
    if (from < 0 || std::find(refused.begin(), refused.end(), from) != refused.end()) return;
    if (!try_merge(region_of(index), from, window)) refused.push_back(from);
  };
  for (const Value input : node(index).inputs)
    if (graph_.producer(input) >= 0) join(graph_.producer(input), kProducerWindow);
  for (const Value input : node(index).inputs) {
    if (constant_behind(graph_, input) != nullptr) continue;
    for (const int32_t user : users_[static_cast<size_t>(input.id)])
      if (user < index && index - user <= kSiblingWindow) join(user, kSiblingWindow);
  }
}

void FusionRegions::add_sum(int32_t index) {
  const Node& sum = node(index);
  const int32_t producer = graph_.producer(sum.inputs[0]);
  if (producer < 0 || region_of(producer) < 0) return;
  const Type& type = graph_.type(sum.inputs[0]);
  const int target = region_of(producer);
  FusionRegion extended = regions_[static_cast<size_t>(target)];
  const std::vector<int> axes = reduced_axes(type.shape, sum.attributes);
  const int64_t columns = axes.empty() ? 1 : type.shape.product(axes.back() + 1, type.shape.rank());
  std::string reason;
  if (!is_floating(type.dtype))
    reason = "its terms are not floating";
  else if (extended.sum >= 0)
    reason = "the region has a sum already";
  else if (columns > 1 && columns < kNarrowestColumns)
    reason = fmt::format("its {} columns are too narrow", columns);
  extended.sum = index;
  if (reason.empty()) reason = refuse(extended, kProducerWindow);
  if (!reason.empty())
    return explain(fmt::format("{} is not summed while {} is made: {}", graph_.name(sum.outputs[0]),
                               graph_.name(sum.inputs[0]), reason));
  region_of_[static_cast<size_t>(index)] = target;
  regions_[static_cast<size_t>(target)] = std::move(extended);
}

bool FusionRegions::try_merge(int into, int from, int32_t window) {
  if (into == from) return true;
  const FusionRegion& a = regions_[static_cast<size_t>(into)];
  const FusionRegion& b = regions_[static_cast<size_t>(from)];
  FusionRegion merged = merged_of(a, b);
  std::string reason;
  if (a.shape != b.shape)
    reason = fmt::format("shapes {} and {} differ", to_string(a.shape), to_string(b.shape));
  else if (a.sum >= 0 && b.sum >= 0)
    reason = "both end in a sum";
  else
    reason = refuse(merged, window);
  if (!reason.empty()) {
    explain(fmt::format("{} and {} stay apart: {}", graph_.name(node(a.nodes.back()).outputs[0]),
                        graph_.name(node(b.nodes.back()).outputs[0]), reason));
    return false;
  }
  replace(into, from, std::move(merged));
  return true;
}

void FusionRegions::replace(int into, int from, FusionRegion merged) {
  for (const int32_t index : regions_[static_cast<size_t>(from)].nodes)
    region_of_[static_cast<size_t>(index)] = into;
  if (merged.sum >= 0) region_of_[static_cast<size_t>(merged.sum)] = into;
  regions_[static_cast<size_t>(from)] = {};
  regions_[static_cast<size_t>(into)] = std::move(merged);
}

std::string FusionRegions::refuse(const FusionRegion& merged, int32_t window) const {
  const int32_t distance = last_of(merged) - first_of(merged);
  if (distance > window) return fmt::format("they are {} nodes apart, more than {}", distance, window);
  // What backward computes again would be made, and kept, in forward.
  if (first_of(merged) <= loss_ && last_of(merged) > loss_) return "the loss stands between them";
  if (merged.nodes.size() > kMaxStatements) return fmt::format("more than {} ops", kMaxStatements);
  const RegionInterface interface = interface_of(merged);
  if (interface.operands.size() > kMaxFusedOperands)
    return fmt::format("{} operands, more than {}", interface.operands.size(), kMaxFusedOperands);
  if (interface.results.size() > kMaxFusedResults)
    return fmt::format("{} results, more than {}", interface.results.size(), kMaxFusedResults);
  return way_back(merged);
}

// Follows every path out of the region. Other regions count as one node each: whoever depends on one of their
// nodes waits for all. Nodes after the region's last cannot lead back, since nothing there is merged yet.
std::string FusionRegions::way_back(const FusionRegion& merged) const {
  const int32_t last = last_of(merged);
  std::vector<int32_t> pending;
  std::unordered_set<int32_t> reached;
  std::string found;
  const auto follow = [&](int32_t from) {
    for (const Value output : node(from).outputs)
      for (const int32_t user : users_[static_cast<size_t>(output.id)]) {
        if (user > last) continue;
        if (has(merged, user)) {
          if (!has(merged, from) && found.empty())
            found = fmt::format("{} needs a result and is needed itself", graph_.name(output));
        } else if (reached.insert(user).second) {
          pending.push_back(user);
        }
      }
  };
  for (const int32_t index : merged.nodes) follow(index);
  if (merged.sum >= 0) {
    for (const int32_t user : users_[static_cast<size_t>(node(merged.sum).outputs[0].id)])
      if (has(merged, user)) return "it reads the region's own sum";
    follow(merged.sum);
  }
  while (!pending.empty() && found.empty()) {
    const int32_t index = pending.back();
    pending.pop_back();
    follow(index);
    if (region_of(index) < 0) continue;
    const FusionRegion& other = regions_[static_cast<size_t>(region_of(index))];
    for (const int32_t member : other.nodes)
      if (reached.insert(member).second) pending.push_back(member);
    if (other.sum >= 0 && reached.insert(other.sum).second) pending.push_back(other.sum);
  }
  return found;
}

RegionInterface FusionRegions::interface_of(const FusionRegion& region) const {
  RegionInterface interface;
  const auto is_inside = [&](int32_t index) { return has(region, index); };
  if (region.sum >= 0) interface.results.push_back(node(region.sum).outputs[0]);
  for (const int32_t index : region.nodes) {
    for (const Value input : node(index).inputs) {
      const Value source = before_broadcasts(graph_, input);
      const int32_t producer = graph_.producer(source);
      if (constant_behind(graph_, input) != nullptr || (producer >= 0 && is_inside(producer))) continue;
      if (std::find(interface.operands.begin(), interface.operands.end(), source) == interface.operands.end())
        interface.operands.push_back(source);
    }
    const Value output = node(index).outputs[0];
    const auto& users = users_[static_cast<size_t>(output.id)];
    const bool read_outside = !std::all_of(users.begin(), users.end(), is_inside);
    if (read_outside || is_output_[static_cast<size_t>(output.id)]) interface.results.push_back(output);
  }
  return interface;
}

}  // namespace lockstep
