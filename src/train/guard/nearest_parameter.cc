#include "train/guard/nearest_parameter.h"

#include <algorithm>
#include <array>
#include <queue>
#include <tuple>
#include <vector>

#include "graph/op_def.h"
#include "ops/gather_unit.h"
#include "passes/autodiff.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 8> kMoves = {"cast",       "reshape", "transpose", "broadcast",
                                                    "checkpoint", "slice",   "split",     "concat"};

bool is_input(const Graph& graph, Value value, Role role) {
  return graph.producer(value) < 0 && graph.role(value) == role;
}

// The name of the parameter that a value is: an input, or of a unit that was gathered; else empty.
std::string param_name(const Graph& graph, Value value) {
  if (is_input(graph, value, Role::kParam)) return graph.name(value);
  if (graph.producer(value) < 0) return {};
  const Node& node = graph.nodes()[static_cast<size_t>(graph.producer(value))];
  return is_unit_part(node) ? node.attributes.text("param") : std::string();
}

class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph) {
    loss_ = graph.outputs().empty() ? -1 : graph.producer(graph.outputs()[0].value);
  }

  // Operands are tried in order; a gradient's node reads both what forward left and the gradient that comes
  // from further on, and the former is of its own layer.
  std::string upstream(Value from) const {
    std::vector<bool> seen(static_cast<size_t>(graph_.value_count()), false);
    using Entry = std::tuple<int, bool, int64_t, int32_t>;  // cost, vector, order of discovery, value
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    int64_t order = 0;
    open.emplace(0, false, order++, from.id);
    while (!open.empty()) {
      const auto [cost, vector, at, id] = open.top();
      open.pop();
      if (seen[static_cast<size_t>(id)]) continue;
      seen[static_cast<size_t>(id)] = true;
      const Value value{id};
      if (std::string name = param_name(graph_, value); !name.empty()) return name;
      if (graph_.producer(value) < 0) continue;
      const Node& node = graph_.nodes()[static_cast<size_t>(graph_.producer(value))];
      for (const Value operand : node.inputs)
        open.emplace(cost + step_cost(operand), graph_.type(operand).shape.rank() < 2, order++, operand.id);
    }
    return {};
  }

 private:
  int step_cost(Value value) const {
    const int32_t producer = graph_.producer(value);
    // A weight says more than the bias that is added after it.
    if (producer < 0 || is_unit_part(graph_.nodes()[static_cast<size_t>(producer)]))
      return graph_.type(value).shape.rank() < 2 ? 1 : 0;
    const std::string_view op = graph_.nodes()[static_cast<size_t>(producer)].op->name;
    if (std::find(kMoves.begin(), kMoves.end(), op) != kMoves.end()) return 0;
    return producer > loss_ ? 3 : 1;
  }

  const Graph& graph_;
  int32_t loss_;
};

// The parameter whose gradient a value is, if it is one.
std::string parameter_of_gradient(const Graph& graph, Value value) {
  const std::string prefix = grad_name("");
  for (const GraphOutput& output : graph.outputs()) {
    if (output.value != value || !output.target.valid()) continue;
    const std::string& target = graph.name(output.target);
    if (target.starts_with(prefix) && graph.find(target.substr(prefix.size())).valid())
      return target.substr(prefix.size());
  }
  return {};
}

}  // namespace

std::string nearest_parameter(const Graph& graph, Value value) {
  if (std::string name = param_name(graph, value); !name.empty()) return name;
  if (std::string name = parameter_of_gradient(graph, value); !name.empty()) return name;
  const Walk walk(graph);
  if (graph.producer(value) >= 0)
    if (std::string name = walk.upstream(value); !name.empty()) return name;
  const auto users = users_of(graph);
  std::vector<Value> wave{value};
  for (size_t at = 0; at < wave.size(); ++at) {
    for (const int32_t user : users[static_cast<size_t>(wave[at].id)]) {
      const Node& node = graph.nodes()[static_cast<size_t>(user)];
      for (const Value output : node.outputs)
        if (std::find(wave.begin(), wave.end(), output) == wave.end()) wave.push_back(output);
      if (std::string name = walk.upstream(node.outputs[0]); !name.empty()) return name;
    }
  }
  return {};
}

}  // namespace lockstep
