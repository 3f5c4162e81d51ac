// OptimizerKernel: what the kernels of the optimizer ops share. Operands are laid out as ops/optimizer.h
// says.
#pragma once
#include "backend/cpu/flat_ranges.h"
#include "backend/cpu/optimizer_steps.h"
#include "backend/cpu/simd/simd.h"
#include "base/error.h"

namespace lockstep::cpu {

class OptimizerKernel : public Kernel {
 protected:
  OptimizerKernel(const Graph& graph, const Node& node, const CpuContext& context) : context_(context) {
    for (const Value input : node.inputs) lengths_.push_back(graph.type(input).shape.numel());
    if (node.attributes.find("no_decay") != nullptr) no_decay_ = node.attributes.integers("no_decay");
  }

  struct Scalars {
    float scale;
    float lr;
    int64_t step;
  };
  Scalars scalars(const KernelArgs& args) const {
    const size_t first = args.inputs.size() - 3;
    const Scalars values{*static_cast<const float*>(args.inputs[first]),
                         *static_cast<const float*>(args.inputs[first + 1]),
                         *static_cast<const int64_t*>(args.inputs[first + 2])};
    LOCKSTEP_CHECK(values.step >= 1, "steps are counted from 1, this one is {}", values.step);
    return values;
  }

  int64_t count() const { return lengths_[0]; }
  const float* gradient(const KernelArgs& args) const { return static_cast<const float*>(args.inputs[1]); }

  // The buffer that is updated: the result's, holding the operand's values.
  template <typename Element = float>
  Element* bring(const KernelArgs& args, size_t input, size_t output) const {
    auto* to = static_cast<Element*>(args.outputs[output]);
    const auto* from = static_cast<const Element*>(args.inputs[input]);
    if (to != from)
      for_rows(context_, lengths_[input], kFlatTask,
               [&](int64_t begin, int64_t end) { std::copy(from + begin, from + end, to + begin); });
    return to;
  }

  // Calls body(begin, end, decays) over all elements in fixed tasks.
  template <typename Body>
  void for_elements(const Body& body) const {
    for_flat_ranges(context_, count(), no_decay_, body);
  }
  // Calls it over [begin, end), here and now.
  template <typename Body>
  void for_decay(int64_t begin, int64_t end, const Body& body) const {
    for_decay_ranges(begin, end, no_decay_, body);
  }
  // Whether weight decay applies at an element.
  bool decays(int64_t element) const {
    const auto next = std::upper_bound(no_decay_.begin(), no_decay_.end(), element);
    return (next - no_decay_.begin()) % 2 == 0;
  }

  CpuContext context_;

 private:
  std::vector<int64_t> lengths_;  // per operand
  std::vector<int64_t> no_decay_;
};

// beta1, beta2, epsilon and weight_decay of a node, where it has them; lr is the step's.
inline AdamOptions adam_options(const Attributes& attributes) {
  const auto read = [&](std::string_view name, double absent) {
    return attributes.find(name) != nullptr ? attributes.number(name) : absent;
  };
  return {.lr = 0.0,
          .beta1 = attributes.number("beta1"),
          .beta2 = attributes.number("beta2"),
          .eps = read("epsilon", 0.0),
          .weight_decay = read("weight_decay", 0.0)};
}

inline AdamOptions with_lr(AdamOptions options, double lr) {
  options.lr = lr;
  return options;
}

inline AdamOptions without_decay(AdamOptions options) {
  options.weight_decay = 0.0;
  return options;
}

}  // namespace lockstep::cpu
