#include "passes/batches.h"

#include <fmt/format.h>

#include <set>
#include <span>

#include "base/error.h"
#include "graph/op_def.h"

namespace lockstep {
namespace {

constexpr int32_t kNone = -1;

class Repeating {
 public:
  Repeating(const Graph& old, const PassOptions& options)
      : old_(old),
        units_(options.units),
        unit_of_(static_cast<size_t>(old.value_count()), kNone),
        shared_(static_cast<size_t>(old.value_count()), false),
        graph_(old.ops(), old.name()),
        made_(static_cast<size_t>(options.batches),
              std::vector<Value>(static_cast<size_t>(old.value_count()))) {}

  Graph run() && {
    add_inputs();
    const auto nodes = static_cast<int32_t>(old_.nodes().size());
    for (int32_t begin = 0; begin < nodes;) {
      const int32_t end = end_of_piece(begin);
      for (std::vector<Value>& batch : made_)
        for (int32_t n = begin; n < end; ++n) emit(n, batch);
      begin = end;
    }
    for (const std::vector<Value>& batch : made_)
      for (const GraphOutput& output : old_.outputs()) {
        LOCKSTEP_CHECK(!output.target.valid(), "several batches would update {}", old_.name(output.target));
        graph_.add_output(batch[static_cast<size_t>(output.value.id)]);
      }
    return std::move(graph_);
  }

 private:
  const Node& node(int32_t n) const { return old_.nodes()[static_cast<size_t>(n)]; }
  bool is_shared(Value value) const { return shared_[static_cast<size_t>(value.id)]; }

  int32_t unit_named(std::string_view param) const {
    for (size_t u = 0; u < units_.size(); ++u)
      for (const ParamUnit::Part& part : units_[u].parts)
        if (part.name == param) return static_cast<int32_t>(u);
    return kNone;
  }

  void add_inputs() {
    for (const GraphInput& input : old_.inputs()) {
      const auto id = static_cast<size_t>(input.value.id);
      const std::string& name = old_.name(input.value);
      shared_[id] = input.role != Role::kInput;
      unit_of_[id] = unit_named(name);
      for (size_t n = 0; n < made_.size(); ++n)
        made_[n][id] = shared_[id] && n > 0 ? made_[0][id]
                                            : graph_.add_input(batch_input(name, static_cast<int64_t>(n)),
                                                               old_.type(input.value), input.role);
    }
  }

  // The first node from here on that reads other units than those before it.
  int32_t end_of_piece(int32_t begin) {
    std::set<int32_t> here;
    for (int32_t n = begin; n < static_cast<int32_t>(old_.nodes().size()); ++n) {
      const std::set<int32_t> units = note(n);
      if (units.empty() || is_shared(node(n).outputs[0])) continue;
      if (!here.empty() && units != here) return n;
      here = units;
    }
    return static_cast<int32_t>(old_.nodes().size());
  }

  // The units that a node reads: mostly one, two where what ends a block is fused with what begins the next.
  std::set<int32_t> note(int32_t n) {
    std::set<int32_t> units;
    bool shared = true;
    for (const Value input : node(n).inputs) {
      shared = shared && is_shared(input);
      if (const int32_t unit = unit_of_[static_cast<size_t>(input.id)]; unit != kNone) units.insert(unit);
    }
    for (const Value output : node(n).outputs) {
      shared_[static_cast<size_t>(output.id)] = shared;
      // What is made of one unit alone is made again where it is (gather_params).
      if (shared && units.size() == 1) unit_of_[static_cast<size_t>(output.id)] = *units.begin();
    }
    return units;
  }

  void emit(int32_t n, std::vector<Value>& batch) {
    const std::vector<Value>& outputs = node(n).outputs;
    if (&batch != made_.data() && is_shared(outputs[0])) {
      for (const Value output : outputs)
        batch[static_cast<size_t>(output.id)] = made_[0][static_cast<size_t>(output.id)];
      return;
    }
    std::vector<Value> inputs;
    for (const Value input : node(n).inputs) inputs.push_back(batch[static_cast<size_t>(input.id)]);
    const std::span<const Value> made = graph_.copy_node(old_, node(n), inputs);
    for (size_t i = 0; i < made.size(); ++i) batch[static_cast<size_t>(outputs[i].id)] = made[i];
  }

  const Graph& old_;
  const std::vector<ParamUnit>& units_;
  std::vector<int32_t> unit_of_;  // per value: of parameters and what is made of them alone
  std::vector<bool> shared_;      // per value: whether all batches have the same
  Graph graph_;
  std::vector<std::vector<Value>> made_;  // per batch and old value
};

}  // namespace

std::string batch_input(std::string_view input, int64_t n) {
  return n == 0 ? std::string(input) : fmt::format("{}.batch{}", input, n);
}

Graph run_batches_together(const Graph& graph, const PassOptions& options) {
  return Repeating(graph, options).run();
}

}  // namespace lockstep
