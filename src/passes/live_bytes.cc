#include "passes/live_bytes.h"

#include <algorithm>
#include <numeric>

#include "graph/op_def.h"

namespace lockstep {
namespace {

class Simulation {
 public:
  Simulation(const Graph& graph, std::span<const int32_t> order)
      : graph_(graph),
        order_(order),
        buffer_(view_origins(graph)),
        last_read_(buffer_.size(), -1),
        external_(buffer_.size(), false) {
    const auto steps = static_cast<int32_t>(order.size());
    std::vector<int32_t> step_of(order.size());  // per node
    for (int32_t n = 0; n < steps; ++n) step_of[static_cast<size_t>(order[static_cast<size_t>(n)])] = n;
    for (int32_t n = 0; n < steps; ++n)
      for (const Value input : node(n).inputs) last_read_[at(input)] = n;
    for (const GraphOutput& output : graph.outputs()) last_read_[at(output.value)] = steps;
    for (const GraphInput& input : graph.inputs()) external_[at(input.value)] = true;
    for (const GraphOutput& output : graph.outputs()) {
      if (!output.target.valid()) continue;
      const int32_t writer = graph.producer(buffer_[static_cast<size_t>(output.value.id)]);
      if (writer >= 0 && last_read_[at(output.target)] <= step_of[static_cast<size_t>(writer)])
        external_[at(output.value)] = true;
    }
  }

  int64_t peak() {
    int64_t live = 0;
    int64_t peak = 0;
    for (int32_t n = 0; n < static_cast<int32_t>(order_.size()); ++n) {
      if (!node(n).op->traits.view)
        for (size_t i = 0; i < node(n).outputs.size(); ++i) live += allocated(n, static_cast<int>(i));
      peak = std::max(peak, live);
      live -= freed(n);
    }
    return peak;
  }

 private:
  // That runs as step n.
  const Node& node(int32_t n) const {
    return graph_.nodes()[static_cast<size_t>(order_[static_cast<size_t>(n)])];
  }
  size_t at(Value value) const { return static_cast<size_t>(buffer_[static_cast<size_t>(value.id)].id); }
  int64_t bytes(Value value) const { return graph_.type(value).bytes(); }

  int64_t allocated(int32_t n, int result) {
    const Value output = node(n).outputs[static_cast<size_t>(result)];
    if (external_[at(output)]) return 0;
    for (const InplacePair pair : node(n).op->inplace) {
      if (pair.output != result || static_cast<size_t>(pair.input) >= node(n).inputs.size()) continue;
      const Value input = node(n).inputs[static_cast<size_t>(pair.input)];
      const auto uses = std::count_if(node(n).inputs.begin(), node(n).inputs.end(),
                                      [&](Value other) { return at(other) == at(input); });
      if (external_[at(input)] || last_read_[at(input)] != n || uses != 1 || bytes(input) != bytes(output))
        continue;
      if (std::find(taken_.begin(), taken_.end(), at(input)) != taken_.end()) continue;
      // The buffer lives on under its new value.
      taken_.push_back(at(input));
      return 0;
    }
    return bytes(output);
  }

  int64_t freed(int32_t n) {
    std::vector<size_t> dead;
    const auto consider = [&](Value value) {
      const size_t buffer = at(value);
      if (external_[buffer] || last_read_[buffer] > n) return;
      if (std::find(taken_.begin(), taken_.end(), buffer) != taken_.end()) return;
      if (std::find(dead.begin(), dead.end(), buffer) == dead.end()) dead.push_back(buffer);
    };
    for (const Value input : node(n).inputs) consider(input);
    for (const Value output : node(n).outputs) consider(output);
    taken_.clear();
    int64_t total = 0;
    for (const size_t buffer : dead) total += bytes(Value{static_cast<int32_t>(buffer)});
    return total;
  }

  const Graph& graph_;
  std::span<const int32_t> order_;
  std::vector<Value> buffer_;
  std::vector<int32_t> last_read_;  // per buffer
  std::vector<bool> external_;      // per buffer: belongs to the caller
  std::vector<size_t> taken_;       // buffers that results of the current node took over
};

}  // namespace

std::vector<Value> view_origins(const Graph& graph) {
  std::vector<Value> origins;
  for (int32_t id = 0; id < graph.value_count(); ++id) origins.push_back(Value{id});
  for (const Node& node : graph.nodes())
    if (node.op->traits.view)
      origins[static_cast<size_t>(node.outputs[0].id)] = origins[static_cast<size_t>(node.inputs[0].id)];
  return origins;
}

int64_t peak_live_bytes(const Graph& graph) {
  std::vector<int32_t> order(graph.nodes().size());
  std::iota(order.begin(), order.end(), 0);
  return peak_live_bytes(graph, order);
}

int64_t peak_live_bytes(const Graph& graph, std::span<const int32_t> order) {
  return Simulation(graph, order).peak();
}

}  // namespace lockstep
