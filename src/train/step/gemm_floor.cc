#include "train/step/gemm_floor.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "base/error.h"
#include "graph/op_def.h"
#include "runtime/executable.h"

namespace lockstep {
namespace {

constexpr int kRepeats = 5;

// What makes two products take the same time: op, operand types, attributes.
std::string key_of(const Graph& graph, const Node& node) {
  std::string key(node.op->name);
  for (const Value input : node.inputs) key += " " + to_string(graph.type(input));
  for (const auto& [name, value] : node.attributes.entries()) key += " " + name + "=" + to_string(value);
  return key;
}

double time_alone(const Graph& graph, const Node& node, Backend& backend) {
  Graph alone(graph.ops(), "alone");
  std::vector<Value> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    inputs.push_back(alone.add_input(fmt::format("x{}", i), graph.type(node.inputs[i])));
  for (const Value output : alone.emit_all(*node.op, inputs, node.attributes)) alone.add_output(output);
  Executable executable(make_plan(std::move(alone), backend), backend);
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    buffers.push_back(backend.allocate(graph.type(node.inputs[i]).bytes()));
    executable.bind(fmt::format("x{}", i), buffers.back()->data());
  }
  double best = 1e30;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    executable.run();
    best = std::min(
        best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

double gemm_floor_milliseconds(const Graph& graph, Backend& backend) {
  std::map<std::string, double> measured;
  double total = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "matmul" && !node.op->name.starts_with("conv2d")) continue;
    const std::string key = key_of(graph, node);
    if (!measured.contains(key)) measured[key] = time_alone(graph, node, backend);
    total += measured[key];
  }
  return total;
}

}  // namespace lockstep
