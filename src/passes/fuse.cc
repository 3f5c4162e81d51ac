#include "passes/fuse.h"

#include <algorithm>
#include <unordered_map>

#include "graph/rewriter.h"
#include "ops/fused_program.h"
#include "passes/fusion_regions.h"

namespace lockstep {
namespace {

class Emitter {
 public:
  Emitter(const Graph& old, const PassOptions& options)
      : old_(old),
        options_(options),
        regions_(old, options),
        rewriter_(old),
        done_(old.nodes().size(), false) {}

  // In program order, a region at the place of its last node. Whatever is needed earlier is emitted on
  // demand, and broadcasts and constants only so: most of them have no reader left.
  Graph run() {
    for (int32_t index = 0; index < static_cast<int32_t>(old_.nodes().size()); ++index) {
      const Node& node = old_.nodes()[static_cast<size_t>(index)];
      if (node.op->name == "broadcast" || node.op->name == "constant") continue;
      if (const FusionRegion* region = fused_region(index); region != nullptr) {
        const bool last = index == std::max(region->nodes.back(), region->sum);
        if (!last) continue;
      }
      emit(index);
    }
    for (const GraphOutput& output : old_.outputs()) need(output.value);
    return std::move(rewriter_).finish();
  }

 private:
  // The region of a node if it is worth a fused node: several ops, or one that spares a broadcast or constant
  // tensor.
  const FusionRegion* fused_region(int32_t index) const {
    if (regions_.region_of(index) < 0) return nullptr;
    const FusionRegion& region = regions_.regions()[static_cast<size_t>(regions_.region_of(index))];
    if (regions_.interface_of(region).operands.empty()) return nullptr;
    if (region.nodes.size() > 1 || region.sum >= 0) return &region;
    for (const Value input : old_.nodes()[static_cast<size_t>(region.nodes[0])].inputs)
      if (before_broadcasts(old_, input) != input || constant_behind(old_, input) != nullptr) return &region;
    return nullptr;
  }

  void need(Value value) {
    if (old_.producer(value) >= 0) emit(old_.producer(value));
  }

  void emit(int32_t index) {
    if (done_[static_cast<size_t>(index)]) return;
    if (const FusionRegion* region = fused_region(index); region != nullptr) return emit_region(*region);
    const Node& node = old_.nodes()[static_cast<size_t>(index)];
    for (const Value input : node.inputs) need(input);
    done_[static_cast<size_t>(index)] = true;
    rewriter_.copy(node);
  }

  void emit_region(const FusionRegion& region) {
    const RegionInterface interface = regions_.interface_of(region);
    for (const Value operand : interface.operands) need(operand);
    for (const int32_t index : region.nodes) done_[static_cast<size_t>(index)] = true;
    if (region.sum >= 0) done_[static_cast<size_t>(region.sum)] = true;

    Graph& graph = rewriter_.graph();
    const std::vector<Value> outputs =
        graph.emit_all(region.sum >= 0 ? "fused_sum" : "fused", rewriter_.mapped(interface.operands),
                       {{"program", to_text(program_of(region, interface))},
                        {"shape", std::vector<int64_t>(region.shape.begin(), region.shape.end())}});
    for (size_t i = 0; i < outputs.size(); ++i) rewriter_.map(interface.results[i], outputs[i]);
    // Two rounds: a kept name may equal the provisional name of a later result.
    for (const Value output : outputs) graph.rename(output, fmt::format("{}$", graph.name(output)));
    for (size_t i = 0; i < outputs.size(); ++i) graph.rename(outputs[i], old_.name(interface.results[i]));
    explain(region, interface);
  }

  FusedProgram program_of(const FusionRegion& region, const RegionInterface& interface) const {
    FusedProgram program;
    std::unordered_map<int32_t, int> statement_of;  // by value
    const auto add = [&](int32_t index) {
      const Node& node = old_.nodes()[static_cast<size_t>(index)];
      FusedStatement statement{node.op, {}, node.attributes};
      for (const Value input : node.inputs) {
        const Value source = before_broadcasts(old_, input);
        if (const auto found = statement_of.find(source.id); found != statement_of.end())
          statement.arguments.push_back({FusedArgument::Kind::kStatement, found->second, 0, DType::kF32});
        else
          statement.arguments.push_back(outside(source, interface));
      }
      statement_of[node.outputs[0].id] = static_cast<int>(program.statements.size());
      program.statements.push_back(std::move(statement));
    };
    for (const int32_t index : region.nodes) add(index);
    if (region.sum >= 0) add(region.sum);
    for (const Value result : interface.results) program.results.push_back(statement_of.at(result.id));
    return program;
  }

  FusedArgument outside(Value source, const RegionInterface& interface) const {
    if (const Node* constant = constant_behind(old_, source); constant != nullptr) {
      const DType dtype = old_.type(source).dtype;
      return {FusedArgument::Kind::kNumber, 0, round_to(dtype, constant->attributes.number("value")), dtype};
    }
    const auto found = std::find(interface.operands.begin(), interface.operands.end(), source);
    return {FusedArgument::Kind::kOperand, static_cast<int>(found - interface.operands.begin()), 0,
            DType::kF32};
  }

  void explain(const FusionRegion& region, const RegionInterface& interface) const {
    if (!options_.explain) return;
    std::string names;
    for (const int32_t index : region.nodes)
      names += (names.empty() ? "" : ", ") + old_.name(old_.nodes()[static_cast<size_t>(index)].outputs[0]);
    if (region.sum >= 0) names += ", " + old_.name(old_.nodes()[static_cast<size_t>(region.sum)].outputs[0]);
    options_.explain("fusion",
                     fmt::format("one node over {} for {} ({} operands, {} results)", to_string(region.shape),
                                 names, interface.operands.size(), interface.results.size()));
  }

  const Graph& old_;
  const PassOptions& options_;
  FusionRegions regions_;
  Rewriter rewriter_;
  std::vector<bool> done_;
};

}  // namespace

Graph fuse(const Graph& graph, const PassOptions& options) { return Emitter(graph, options).run(); }

}  // namespace lockstep
