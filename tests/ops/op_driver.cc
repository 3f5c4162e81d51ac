#include "ops/op_driver.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/philox.h"
#include "graph/rewriter.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "ops/builder.h"
#include "ops/registry.h"
#include "passes/autodiff.h"
#include "runtime/compile.h"

namespace lockstep::testing {
namespace {

std::string raw_bytes(const RefTensor& tensor) {
  std::string bytes(static_cast<size_t>(tensor.type.bytes()), '\0');
  for (int64_t i = 0; i < tensor.numel(); ++i) write_element(tensor.type.dtype, bytes.data(), i, tensor[i]);
  return bytes;
}

RefTensor from_bytes(const Type& type, const std::string& bytes) {
  RefTensor tensor(type);
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor[i] = read_element(type.dtype, bytes.data(), i);
  return tensor;
}

// Appends loss = sum over floating outputs of sum(output * weights), with weights as extra inputs
// "weight<i>".
Graph with_loss(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) rewriter.copy(node);
  Builder b(rewriter.graph());
  Value loss;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Value output = rewriter.mapped(graph.outputs()[i].value);
    if (!is_floating(b.type(output).dtype)) continue;
    const Value weight = b.input(fmt::format("weight{}", i), b.type(output));
    Value term = b.cast(b.mul(output, weight), DType::kF32);
    term = b.sum(b.reshape(term, {b.shape(term).numel()}), {0});
    loss = loss.valid() ? b.add(loss, term) : term;
  }
  Graph result = std::move(rewriter.graph());
  result.add_output(loss);
  return result;
}

}  // namespace

Graph case_graph(const OpCase& op_case, bool differentiated) {
  Graph graph = parse_graph(op_case.text, all_ops(), op_case.label());
  return differentiated ? differentiate(with_loss(graph)) : graph;
}

std::vector<std::string> run_for_bytes(const Graph& graph, const RefTensors& inputs, Backend& backend,
                                       const PassOptions& options) {
  const auto executable = compile(graph, backend, options);
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (const GraphInput& input : executable->graph().inputs()) {
    const std::string& name = executable->graph().name(input.value);
    const std::string bytes = raw_bytes(inputs.at(name));
    buffers.push_back(backend.allocate(static_cast<int64_t>(std::max<size_t>(bytes.size(), 1))));
    backend.upload(buffers.back()->data(), bytes.data(), static_cast<int64_t>(bytes.size()));
    executable->bind(name, buffers.back()->data());
  }
  executable->run();
  std::vector<std::string> results;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    std::string bytes(static_cast<size_t>(graph.type(graph.outputs()[i].value).bytes()), '\0');
    backend.download(bytes.data(), executable->output(i), static_cast<int64_t>(bytes.size()));
    results.push_back(std::move(bytes));
  }
  return results;
}

std::vector<RefTensor> run_on_backend(const Graph& graph, const RefTensors& inputs, Backend& backend,
                                      const PassOptions& options) {
  std::vector<RefTensor> results;
  const std::vector<std::string> bytes = run_for_bytes(graph, inputs, backend, options);
  for (size_t i = 0; i < bytes.size(); ++i)
    results.push_back(from_bytes(graph.type(graph.outputs()[i].value), bytes[i]));
  return results;
}

Graph decomposed(const Graph& graph) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (const Node& node : graph.nodes()) {
    if (node.op->decompose == nullptr) {
      rewriter.copy(node);
      continue;
    }
    const std::vector<Value> results =
        node.op->decompose(rewriter.graph(), node, rewriter.mapped(node.inputs));
    LOCKSTEP_CHECK(results.size() == node.outputs.size(), "{}", to_text(graph, node));
    for (size_t i = 0; i < results.size(); ++i) {
      LOCKSTEP_CHECK(rewriter.graph().type(results[i]) == graph.type(node.outputs[i]), "result {} of {}", i,
                     to_text(graph, node));
      rewriter.map(node.outputs[i], results[i]);
    }
    changed = true;
  }
  Graph result = std::move(rewriter).finish();
  return changed ? decomposed(result) : result;
}

double tolerance_for(const OpCase& op_case, const std::string& dtype) {
  if (dtype == "bf16") return std::max(op_case.tolerance, 2.5e-2);
  if (dtype == "f16") return std::max(op_case.tolerance, 4e-3);
  return op_case.tolerance;
}

std::string check_finite_differences(const OpCase& op_case) {
  const Graph forward = with_loss(parse_graph(op_case.text, all_ops(), op_case.label()));
  const Graph backward = differentiate(forward);
  verify(backward, Stage::kDifferentiated);
  RefTensors inputs = make_inputs(backward, op_case);
  const std::vector<RefTensor> results = interpret(backward, inputs);
  size_t output = 1;
  for (const GraphInput& input : forward.inputs()) {
    if (input.role != Role::kParam) continue;
    const std::string& name = forward.name(input.value);
    const RefTensor& gradient = results[output++];
    RefTensor& x = inputs[name];
    // What rounding leaves of a difference of two losses over twice the step is 1e-11 of the loss.
    double allowed = 1e-10 * std::fabs(results[0].scalar());
    for (const double g : gradient.data) allowed = std::max(allowed, 1e-5 * std::fabs(g));
    // A dozen elements spread over the tensor say as much as all of them.
    const int64_t stride = std::max<int64_t>(1, x.numel() / 12);
    for (int64_t i = 0; i < x.numel(); i += stride) {
      const double step = 1e-5;
      const double kept = x[i];
      x[i] = kept + step;
      const double above = interpret(forward, inputs)[0].scalar();
      x[i] = kept - step;
      const double below = interpret(forward, inputs)[0].scalar();
      x[i] = kept;
      const double numeric = (above - below) / (2 * step);
      if (!(std::fabs(numeric - gradient[i]) <= allowed))
        return fmt::format("d loss / d {}[{}] is {} by autodiff, {} by finite differences", name, i,
                           gradient[i], numeric);
    }
  }
  return "";
}

}  // namespace lockstep::testing
