#include "runtime/lower.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "passes/dce.h"

namespace lockstep {
namespace {

// Collectives are run by the runtime over groups of ranks (runtime/collective_steps.h).
bool needs_kernel(const Node& node) { return !node.op->traits.view && !node.op->traits.collective; }

std::vector<KernelChoice> choose_all(const Graph& graph, Backend& backend) {
  backend.prepare(graph);
  std::vector<KernelChoice> choices;
  for (const Node& node : graph.nodes())
    choices.push_back(needs_kernel(node) ? backend.choose(graph, node) : KernelChoice{});
  return choices;
}

class Lowering {
 public:
  Lowering(const Graph& old, Backend& backend) : old_(old), backend_(backend), rewriter_(old) {}

  // `choices` are those of the old graph; kernels do not depend on the graph that they were chosen for.
  Lowered run(std::vector<KernelChoice> choices) && {
    const std::vector<bool> read = read_values(old_);
    for (size_t n = 0; n < choices.size(); ++n) {
      const Node& node = old_.nodes()[n];
      if (!needs_kernel(node) || choices[n].kernel != nullptr) {
        rewriter_.copy(node);
        choices_.push_back(std::move(choices[n]));
        continue;
      }
      const auto first = static_cast<int32_t>(choices_.size());
      const std::vector<Value> results =
          replace(old_, node, rewriter_.mapped(node.inputs), read, std::move(choices[n].refusals));
      for (size_t i = 0; i < results.size(); ++i)
        if (results[i].valid()) take_over(node.outputs[i], results[i], first);
    }
    if (!failures_.empty())
      throw UserError("the {} backend cannot run {}", backend_.name(), fmt::join(failures_, "\nnor "));
    Lowered lowered{std::move(rewriter_).finish(), std::move(choices_), std::move(replaced_)};
    verify(lowered.graph, Stage::kScheduled);
    return lowered;
  }

 private:
  static std::vector<bool> read_values(const Graph& graph) {
    std::vector<bool> read(static_cast<size_t>(graph.value_count()), false);
    for (const Node& node : graph.nodes())
      for (const Value input : node.inputs) read[static_cast<size_t>(input.id)] = true;
    for (const GraphOutput& output : graph.outputs()) read[static_cast<size_t>(output.value.id)] = true;
    return read;
  }

  // Maps a result, which also gets the old name if a node from `first` on makes it.
  void take_over(Value old_value, Value result, int32_t first) {
    rewriter_.map(old_value, result);
    const std::string& name = old_.name(old_value);
    if (rewriter_.graph().producer(result) >= first && !rewriter_.graph().find(name).valid())
      rewriter_.graph().rename(result, name);
  }

  // Emits what a node of `graph` decomposes into, with operands of the new graph. Results that nobody reads
  // are not computed; their value is invalid.
  std::vector<Value> replace(const Graph& graph, const Node& node, std::span<const Value> operands,
                             const std::vector<bool>& read, std::vector<Refusal> refusals) {
    if (node.op->decompose == nullptr) return fail(graph, node, operands, refusals);
    const auto first = static_cast<int32_t>(choices_.size());
    const size_t place = replaced_.size();
    replaced_.push_back({first, first, to_text(graph, node), std::move(refusals)});
    std::vector<bool> wanted;
    for (const Value output : node.outputs) wanted.push_back(read[static_cast<size_t>(output.id)]);
    const Graph body = body_of(graph, node, wanted);
    const std::vector<Value> emitted = emit(body, operands);
    replaced_[place].end_node = static_cast<int32_t>(choices_.size());
    std::vector<Value> results(wanted.size());
    for (size_t i = 0, next = 0; i < wanted.size(); ++i)
      if (wanted[i]) results[i] = emitted[next++];
    return results;
  }

  // The decomposition as a graph of its own whose outputs are the wanted results.
  static Graph body_of(const Graph& graph, const Node& node, const std::vector<bool>& wanted) {
    Graph body(graph.ops(), std::string(node.op->name));
    std::vector<Value> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(body.add_input(fmt::format("operand{}", i), graph.type(node.inputs[i])));
    const std::vector<Value> results = node.op->decompose(body, node, inputs);
    LOCKSTEP_CHECK(results.size() == node.outputs.size(), "{} decomposes into {} results instead of {}",
                   node.op->name, results.size(), node.outputs.size());
    for (size_t i = 0; i < results.size(); ++i) {
      LOCKSTEP_CHECK(body.type(results[i]) == graph.type(node.outputs[i]),
                     "result {} of {} is {}, its decomposition gives {}", i, node.op->name,
                     to_string(graph.type(node.outputs[i])), to_string(body.type(results[i])));
      if (wanted[i]) body.add_output(results[i]);
    }
    return remove_dead_nodes(body);
  }

  std::vector<Value> emit(const Graph& body, std::span<const Value> operands) {
    const std::vector<bool> read = read_values(body);
    std::vector<Value> map(static_cast<size_t>(body.value_count()));
    for (size_t i = 0; i < operands.size(); ++i)
      map[static_cast<size_t>(body.inputs()[i].value.id)] = operands[i];
    for (const Node& node : body.nodes()) {
      std::vector<Value> inputs;
      for (const Value input : node.inputs) inputs.push_back(map[static_cast<size_t>(input.id)]);
      const std::vector<Value> results = place(body, node, inputs, read);
      for (size_t i = 0; i < results.size(); ++i) map[static_cast<size_t>(node.outputs[i].id)] = results[i];
    }
    std::vector<Value> results;
    for (const GraphOutput& output : body.outputs())
      results.push_back(map[static_cast<size_t>(output.value.id)]);
    return results;
  }

  std::vector<Value> place(const Graph& body, const Node& node, std::span<const Value> inputs,
                           const std::vector<bool>& read) {
    KernelChoice choice = needs_kernel(node) ? backend_.choose(body, node) : KernelChoice{};
    if (needs_kernel(node) && choice.kernel == nullptr)
      return replace(body, node, inputs, read, std::move(choice.refusals));
    choices_.push_back(std::move(choice));
    return rewriter_.graph().emit_all(*node.op, inputs, node.attributes);
  }

  // The search goes on, so that one message names everything that is missing: each op once.
  std::vector<Value> fail(const Graph& graph, const Node& node, std::span<const Value> operands,
                          const std::vector<Refusal>& refusals) {
    if (failed_ops_.insert(node.op->name).second) {
      std::string reasons;
      for (const Refusal& refusal : refusals)
        reasons += fmt::format("\n  {}: {}", refusal.kernel, refusal.reason);
      if (reasons.empty()) reasons = "\n  no kernel is registered for this op";
      failures_.push_back(to_text(graph, node) + reasons);
    }
    choices_.emplace_back();
    return rewriter_.graph().emit_all(*node.op, operands, node.attributes);
  }

  const Graph& old_;
  Backend& backend_;
  Rewriter rewriter_;
  std::vector<KernelChoice> choices_;
  std::vector<Replacement> replaced_;
  std::vector<std::string> failures_;
  std::set<std::string_view> failed_ops_;
};

}  // namespace

Lowered lower(Graph graph, Backend& backend) {
  std::vector<KernelChoice> choices = choose_all(graph, backend);
  const auto nodes = graph.nodes();
  bool complete = true;
  for (size_t n = 0; n < nodes.size(); ++n)
    complete = complete && (!needs_kernel(nodes[n]) || choices[n].kernel != nullptr);
  if (complete) return {std::move(graph), std::move(choices), {}};
  return Lowering(graph, backend).run(std::move(choices));
}

}  // namespace lockstep
