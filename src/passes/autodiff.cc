#include "passes/autodiff.h"

#include <algorithm>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "graph/text.h"
#include "ops/builder.h"

namespace lockstep {
namespace {

class Autodiff {
 public:
  Autodiff(const Graph& forward, AutodiffOptions options)
      : forward_(forward), rewriter_(forward), options_(options) {}

  Graph run() && {
    check_loss();
    for (const Node& node : forward_.nodes()) rewriter_.copy(node);
    mark_needed();
    gradients_.resize(static_cast<size_t>(graph().value_count()));
    const Value loss = rewriter_.mapped(forward_.outputs()[0].value);
    gradient(loss) = Builder(graph()).constant_like(1.0, loss);
    for (auto n = static_cast<int64_t>(forward_.nodes().size()) - 1; n >= 0; --n) backward(n);
    const std::vector<Value> parameter_gradients = add_gradient_inputs();
    const std::vector<GraphOutput> outputs = forward_outputs();
    Graph result = std::move(rewriter_).finish();
    result.clear_outputs();
    for (const GraphOutput& output : outputs)
      output.target.valid() ? result.add_update(output.target, output.value)
                            : result.add_output(output.value);
    size_t next = 0;
    for (const GraphInput& input : forward_.inputs()) {
      if (input.role != Role::kParam) continue;
      result.add_update(result.find(grad_name(forward_.name(input.value))), parameter_gradients[next++]);
    }
    return result;
  }

 private:
  Graph& graph() { return rewriter_.graph(); }
  // Only values of the forward part get an entry; backward values are never differentiated again.
  Value& gradient(Value value) { return gradients_[static_cast<size_t>(value.id)]; }

  void check_loss() const {
    if (forward_.outputs().empty()) throw UserError("graph {}: no output to differentiate", forward_.name());
    const Type& type = forward_.type(forward_.outputs()[0].value);
    if (type.shape.numel() != 1 || !is_floating(type.dtype))
      throw UserError("graph {}: the first output is the loss and must be one floating number, it is {}",
                      forward_.name(), to_string(type));
  }

  // A value needs a gradient when a parameter can reach it.
  void mark_needed() {
    needed_.resize(static_cast<size_t>(graph().value_count()), false);
    for (const GraphInput& input : graph().inputs())
      needed_[static_cast<size_t>(input.value.id)] = input.role == Role::kParam;
    for (const Node& node : graph().nodes()) {
      const bool reached =
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](Value v) { return needs(v); });
      for (const Value output : node.outputs)
        needed_[static_cast<size_t>(output.id)] =
            reached && !node.op->gradient_is_zero && is_floating(graph().type(output).dtype);
    }
  }
  bool needs(Value value) const { return needed_[static_cast<size_t>(value.id)]; }

  void backward(int64_t index) {
    GradientContext context{graph(), graph().nodes()[static_cast<size_t>(index)], {}, {}};
    bool any = false;
    for (const Value output : context.node.outputs) {
      context.output_gradients.push_back(gradient(output));
      any |= gradient(output).valid() && needs(output);
    }
    if (!any) return;
    for (const Value input : context.node.inputs) context.needed.push_back(needs(input));
    if (std::none_of(context.needed.begin(), context.needed.end(), [](bool b) { return b; })) return;
    if (context.node.op->gradient == nullptr)
      throw UserError("{} has no gradient, but the loss depends on parameters through {}",
                      context.node.op->name, to_text(graph(), context.node));
    const std::vector<Value> grads = context.node.op->gradient(context);
    LOCKSTEP_CHECK(grads.size() == context.node.inputs.size(), "gradient of {}", context.node.op->name);
    for (size_t i = 0; i < grads.size(); ++i)
      if (grads[i].valid() && context.needed[i]) add_contribution(context.node.inputs[i], grads[i]);
  }

  void add_contribution(Value value, Value contribution) {
    LOCKSTEP_CHECK(graph().type(value) == graph().type(contribution), "gradient of {}: {} is {}",
                   graph().name(value), graph().name(contribution), to_string(graph().type(contribution)));
    Value& total = gradient(value);
    total = total.valid() ? graph().emit("add", {total, contribution}) : contribution;
  }

  std::vector<Value> add_gradient_inputs() {
    std::vector<Value> results;
    for (const GraphInput& input : forward_.inputs()) {
      if (input.role != Role::kParam) continue;
      const Value param = rewriter_.mapped(input.value);
      const Value slot =
          graph().add_input(grad_name(forward_.name(input.value)), graph().type(param), Role::kGrad);
      Value value = gradient(param);
      // A parameter that the loss does not use has gradient zero, written out so that nobody reads stale
      // bytes.
      if (!value.valid())
        value = options_.accumulate ? slot : Builder(graph()).constant(0.0, graph().type(param));
      else if (options_.accumulate)
        value = graph().emit("add", {slot, value});
      results.push_back(value);
    }
    return results;
  }

  std::vector<GraphOutput> forward_outputs() {
    std::vector<GraphOutput> results;
    for (const GraphOutput& output : forward_.outputs()) {
      Value value = rewriter_.mapped(output.value);
      const Value target = output.target.valid() ? rewriter_.mapped(output.target) : Value{};
      if (options_.accumulate && target.valid() && graph().role(target) == Role::kStatistic)
        value = graph().emit("add", {target, value});
      results.push_back({value, target});
    }
    return results;
  }

  const Graph& forward_;
  Rewriter rewriter_;
  AutodiffOptions options_;
  std::vector<bool> needed_;
  std::vector<Value> gradients_;
};

}  // namespace

std::string grad_name(std::string_view param) { return fmt::format("grad.{}", param); }

Graph differentiate(const Graph& forward, AutodiffOptions options) {
  return Autodiff(forward, options).run();
}

}  // namespace lockstep
