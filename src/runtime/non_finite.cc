#include "runtime/non_finite.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/op_def.h"

namespace lockstep {
namespace {

class Search {
 public:
  Search(const Executable& executable, Backend& backend) : graph_(executable.graph()), backend_(backend) {
    loss_ = graph_.outputs().empty() ? -1 : graph_.producer(graph_.outputs()[0].value);
  }

  // Looks at one value; keeps the first bad one.
  bool bad(Value value, const void* data) {
    const Type& type = graph_.type(value);
    if (!is_floating(type.dtype) || type.bytes() == 0) return false;
    host_.resize(static_cast<size_t>(type.bytes()));
    backend_.download(host_.data(), data, type.bytes());
    double largest = 0;
    for (int64_t i = 0; i < type.shape.numel(); ++i) {
      const double x = read_element(type.dtype, host_.data(), i);
      if (!std::isfinite(x)) return found(value, i, x);
      largest = std::max(largest, std::fabs(x));
    }
    // Graph inputs come from elsewhere: a large one is not a sign of anything growing here.
    if (graph_.producer(value) >= 0 && largest > largest_) {
      largest_ = largest;
      largest_value_ = graph_.name(value);
    }
    return false;
  }

  const std::optional<NonFiniteValue>& found() const { return found_; }

 private:
  bool found(Value value, int64_t element, double x) {
    const int32_t producer = graph_.producer(value);
    const std::string op =
        producer < 0 ? "input" : std::string(graph_.nodes()[static_cast<size_t>(producer)].op->name);
    found_ = NonFiniteValue{graph_.name(value), op, element, x, producer > loss_, largest_, largest_value_};
    return true;
  }

  const Graph& graph_;
  Backend& backend_;
  int32_t loss_;
  std::vector<char> host_;
  double largest_ = 0;
  std::string largest_value_;
  std::optional<NonFiniteValue> found_;
};

}  // namespace

std::optional<NonFiniteValue> first_non_finite(Executable& executable, Backend& backend) {
  Search search(executable, backend);
  const Graph& graph = executable.graph();
  for (const GraphInput& input : graph.inputs()) {
    if (input.role == Role::kGrad || input.role == Role::kStatistic)
      continue;  // written by the graph, or used as scratch
    if (search.bad(input.value, executable.address_of(input.value))) return search.found();
  }
  executable.run_watched([&](const Node& node) {
    if (node.op->is_start()) return true;  // its result is not there yet
    for (const Value output : node.outputs)
      if (search.bad(output, executable.address_of(output))) return false;
    return true;
  });
  return search.found();
}

}  // namespace lockstep
