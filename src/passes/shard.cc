#include "passes/shard.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/text.h"
#include "passes/autodiff.h"
#include "passes/dce.h"

namespace lockstep {
namespace {

using Kind = Placement::Kind;

constexpr double kImpossible = std::numeric_limits<double>::infinity();

// What it takes to have a value in another placement: bytes sent by a rank, then bytes copied by it.
struct Price {
  double sent = 0;
  double cut = 0;

  Price& operator+=(const Price& other) {
    sent += other.sent;
    cut += other.cut;
    return *this;
  }
  bool operator<(const Price& other) const {
    return sent != other.sent ? sent < other.sent : cut < other.cut;
  }
};

class Sharder {
 public:
  Sharder(const Graph& old, const ShardAxis& axis, const PassOptions& options)
      : old_(old),
        axis_(axis),
        options_(options),
        graph_(old.ops(), old.name()),
        forms_(static_cast<size_t>(old.value_count())) {}

  Graph run() && {
    check_axis();
    for (const GraphInput& input : old_.inputs()) add_input(input);
    for (const Node& node : old_.nodes()) add_node(node);
    for (const GraphOutput& output : old_.outputs()) add_output(output);
    return std::move(graph_);
  }

 private:
  // One way in which a value exists in the new graph.
  struct Form {
    Placement placement;
    Value value;
  };

  void check_axis() const {
    if (axis_.size < 1 || axis_.index < 0 || axis_.index >= axis_.size)
      throw UserError("shard: there is no rank {} among {}", axis_.index, axis_.size);
    for (const auto& [name, placement] : axis_.placements) {
      const Value input = old_.find(name);
      if (!input.valid() || old_.producer(input) >= 0)
        throw UserError("shard: graph {} has no input {}", old_.name(), name);
      const Shape& shape = old_.type(input).shape;
      if (placement.kind == Kind::kSplit && !can_split(shape, placement.axis))
        throw UserError("shard: {} of shape {} cannot be split along axis {} over {} ranks", name,
                        to_string(shape), placement.axis, axis_.size);
    }
  }

  bool can_split(const Shape& shape, int axis) const {
    return axis >= 0 && axis < shape.rank() && shape[axis] % axis_.size == 0;
  }
  bool can_have(Value value, Placement placement) const {
    return placement.kind != Kind::kSplit || can_split(old_.type(value).shape, placement.axis);
  }

  Type local(Type type, Placement placement) const {
    if (placement.kind == Kind::kSplit)
      type.shape = type.shape.with(placement.axis, type.shape[placement.axis] / axis_.size);
    return type;
  }

  std::vector<Form>& forms(Value old_value) { return forms_[static_cast<size_t>(old_value.id)]; }

  // ---- inputs and outputs ----

  Placement input_placement(Value input) const {
    const std::string& name = old_.name(input);
    const auto found = axis_.placements.find(name);
    if (found != axis_.placements.end()) return found->second;
    for (const auto& [param, placement] : axis_.placements)
      if (grad_name(param) == name) return placement;
    return Placement::replicate();
  }

  void add_input(const GraphInput& input) {
    const Placement placement = input_placement(input.value);
    const Value value =
        graph_.add_input(old_.name(input.value), local(old_.type(input.value), placement), input.role);
    forms(input.value).push_back({placement, value});
  }

  void add_output(const GraphOutput& output) {
    if (!output.target.valid()) return graph_.add_output(converted(output.value, Placement::replicate()));
    const Form target = forms(output.target).front();
    graph_.add_update(target.value, converted(output.value, target.placement));
  }

  // ---- nodes ----

  std::vector<ShardingSignature> signatures_of(const Node& node) const {
    if (node.op->sharding != nullptr) return node.op->sharding(old_, node);
    return {{std::vector<Placement>(node.inputs.size()), std::vector<Placement>(node.outputs.size())}};
  }

  Price signature_price(const Node& node, const ShardingSignature& signature) {
    Price price;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (!can_have(node.outputs[i], signature.outputs[i])) return {kImpossible, 0};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!can_have(node.inputs[i], signature.inputs[i])) return {kImpossible, 0};
      price += nearest(node.inputs[i], signature.inputs[i]).second;
    }
    return price;
  }

  void add_node(const Node& node) {
    const std::vector<ShardingSignature> signatures = signatures_of(node);
    const ShardingSignature* best = nullptr;
    Price least{kImpossible, 0};
    for (const ShardingSignature& signature : signatures) {
      const Price price = signature_price(node, signature);
      if (best != nullptr && !(price < least)) continue;
      best = &signature;
      least = price;
    }
    LOCKSTEP_CHECK(best != nullptr && least.sent < kImpossible, "no way to split {}", to_text(old_, node));
    explain(node, *best, least);
    std::vector<Value> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      operands.push_back(converted(node.inputs[i], best->inputs[i]));
    const std::vector<Value> results = emit(node, operands, best->outputs, old_.name(node.outputs[0]));
    for (size_t i = 0; i < results.size(); ++i) {
      if (i > 0) graph_.rename(results[i], old_.name(node.outputs[i]));
      forms(node.outputs[i]).push_back({best->outputs[i], results[i]});
    }
  }

  // The node on local operands. Attributes that say a shape say the local one.
  std::vector<Value> emit(const Node& node, const std::vector<Value>& operands,
                          const std::vector<Placement>& placements, const std::string& name) {
    Attributes attributes = node.attributes;
    const Shape shape = local(old_.type(node.outputs[0]), placements[0]).shape;
    if (attributes.find("shape") != nullptr)
      attributes.set("shape", std::vector<int64_t>(shape.begin(), shape.end()));
    std::vector<Value> results = graph_.emit_all(*node.op, operands, attributes, name);
    for (size_t i = 0; i < results.size(); ++i)
      LOCKSTEP_CHECK(graph_.type(results[i]) == local(old_.type(node.outputs[i]), placements[i]),
                     "{} of {} gives {} on one of {} ranks", old_.name(node.outputs[i]), to_text(old_, node),
                     to_string(graph_.type(results[i])), axis_.size);
    return results;
  }

  void explain(const Node& node, const ShardingSignature& signature, const Price& price) const {
    if (!options_.explain) return;
    std::string line = fmt::format("{}: {} {}", axis_.group, to_text(old_, node), to_string(signature));
    if (price.sent > 0) line += fmt::format(", {:.0f} bytes sent", price.sent);
    options_.explain("sharding", line);
  }

  // ---- conversions ----

  // Of the bytes M of a whole value a rank sends (n-1)/n M to gather a split one or to scatter a sum, as much
  // again to have all of a sum, and 1/n of it to split along another axis.
  Price conversion_price(Value old_value, Placement from, Placement to) const {
    if (from == to) return {};
    if (to.kind == Kind::kPartial) return {kImpossible, 0};
    const auto bytes = static_cast<double>(old_.type(old_value).bytes());
    const auto ranks = static_cast<double>(axis_.size);
    const double others = bytes * (ranks - 1) / ranks;
    switch (from.kind) {
      case Kind::kReplicate: return {0, is_remade(old_value, to) ? 0 : bytes / ranks};
      case Kind::kPartial: return {2 * others * sum_width(old_.type(old_value).dtype), 0};
      case Kind::kSplit: break;
    }
    return {to.kind == Kind::kSplit ? others / ranks : others, 0};
  }

  // Sums are sent in f32 or i64.
  static double sum_width(DType dtype) {
    const int64_t bytes = is_floating(dtype) ? size_of(DType::kF32) : size_of(DType::kI64);
    return static_cast<double>(bytes) / static_cast<double>(size_of(dtype));
  }

  std::pair<Form, Price> nearest(Value old_value, Placement to) {
    std::pair<Form, Price> best{{}, {kImpossible, 0}};
    for (const Form& form : forms(old_value)) {
      const Price price = conversion_price(old_value, form.placement, to);
      if (!best.first.value.valid() || price < best.second) best = {form, price};
    }
    return best;
  }

  Value converted(Value old_value, Placement to) {
    const Form from = nearest(old_value, to).first;
    if (from.placement == to) return from.value;
    const Value value = convert(old_value, from, to);
    forms(old_value).push_back({to, value});
    return value;
  }

  Value convert(Value old_value, const Form& from, Placement to) {
    if (from.placement.kind == Kind::kReplicate) return part(old_value, from.value, to);
    Attributes attributes{{"group", axis_.group}, {"size", axis_.size}};
    std::string_view op;
    if (from.placement.kind == Kind::kPartial && to.kind == Kind::kReplicate) {
      op = "all_reduce";
    } else if (from.placement.kind == Kind::kPartial) {
      op = "reduce_scatter";
      attributes.set("axis", int64_t{to.axis});
    } else if (to.kind == Kind::kReplicate) {
      op = "all_gather";
      attributes.set("axis", int64_t{from.placement.axis});
    } else {
      op = "all_to_all";
      attributes.set("split_axis", int64_t{to.axis});
      attributes.set("concat_axis", int64_t{from.placement.axis});
    }
    if (options_.explain)
      options_.explain("sharding", fmt::format("{}: {} of {}", axis_.group, op, old_.name(old_value)));
    return graph_.emit(op, {from.value}, attributes, fmt::format("{}_{}", old_.name(old_value), op));
  }

  // This rank's part of a replicated value: made as such where that takes no more than whole operands (a
  // broadcast, a constant), else cut out.
  Value part(Value old_value, Value whole, Placement to) {
    const std::string name = fmt::format("{}_part", old_.name(old_value));
    if (is_remade(old_value, to)) {
      const Node& node = old_.nodes()[static_cast<size_t>(old_.producer(old_value))];
      std::vector<Value> operands;
      for (const Value input : node.inputs) operands.push_back(converted(input, Placement::replicate()));
      return emit(node, operands, {to}, name)[0];
    }
    const int64_t extent = old_.type(old_value).shape[to.axis] / axis_.size;
    return graph_.emit(
        "slice", {whole},
        {{"axis", int64_t{to.axis}}, {"begin", axis_.index * extent}, {"end", (axis_.index + 1) * extent}},
        name);
  }

  bool is_remade(Value old_value, Placement to) const {
    const int32_t producer = old_.producer(old_value);
    if (producer < 0) return false;
    const Node& node = old_.nodes()[static_cast<size_t>(producer)];
    if (node.op->name != "broadcast" && node.op->name != "constant") return false;
    const ShardingSignature wanted{std::vector<Placement>(node.inputs.size()), {to}};
    const std::vector<ShardingSignature> signatures = signatures_of(node);
    return std::find(signatures.begin(), signatures.end(), wanted) != signatures.end();
  }

  const Graph& old_;
  const ShardAxis& axis_;
  const PassOptions& options_;
  Graph graph_;
  std::vector<std::vector<Form>> forms_;  // per old value, as made first
};

}  // namespace

Graph shard(const Graph& graph, const ShardAxis& axis, const PassOptions& options) {
  // Nobody removes a collective afterwards that only a dead node needs.
  const Graph alive = remove_dead_nodes(graph);
  return Sharder(alive, axis, options).run();
}

Graph run_shard(const Graph& graph, const PassOptions& options) {
  Graph current = graph;
  for (const ShardAxis& axis : options.shard) current = shard(current, axis, options);
  return current;
}

}  // namespace lockstep
