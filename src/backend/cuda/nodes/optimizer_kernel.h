// OptimizerKernel: what the nodes of all optimizers share. Operands are laid out as ops/optimizer.h says.
#pragma once
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/optimizer.h"
#include "ops/optimizer.h"

namespace lockstep::cuda {

// beta1, beta2, epsilon and weight_decay of a node, where it has them.
inline AdamAttributes adam_attributes(const Attributes& attributes) {
  const auto read = [&](std::string_view name, double absent) {
    return attributes.find(name) != nullptr ? attributes.number(name) : absent;
  };
  return {read("beta1", 0.0), read("beta2", 0.0), read("epsilon", 0.0), read("weight_decay", 0.0)};
}

class OptimizerKernel : public NodeKernel {
 protected:
  OptimizerKernel(const Graph& graph, const Node& node, Device& device)
      : count_(in_type(graph, node, 0).shape.numel()),
        no_decay_(node.attributes.integers("no_decay")),
        edges_(device, no_decay_) {
    for (const Value input : node.inputs) bytes_.push_back(graph.type(input).bytes());
  }

  StepScalars scalars(const KernelArgs& args) const {
    const size_t first = args.inputs.size() - 3;
    return {in(args, first), in(args, first + 1), in<int64_t>(args, first + 2)};
  }
  NoDecay no_decay() const { return {edges_.data(), static_cast<int>(edges_.size())}; }
  bool decays(int64_t element) const { return lockstep::decays(no_decay_, element); }
  int64_t count() const { return count_; }

  // The buffer that is updated: the result's, holding the operand's values.
  float* bring(const KernelArgs& args, cudaStream_t stream, size_t input, size_t output) const {
    copy_on(stream, args.outputs[output], args.inputs[input], bytes_[input]);
    return out(args, output);
  }
  // p, g and up to two buffers of the parameters' length, all of them f32.
  FlatState state(const KernelArgs& args, cudaStream_t stream, int buffers) const {
    FlatState flat{};
    flat.p = bring(args, stream, 0, 0);
    flat.g = in(args, 1);
    flat.m = buffers > 0 ? bring(args, stream, 2, 1) : nullptr;
    flat.v = buffers > 1 ? bring(args, stream, 3, 2) : nullptr;
    flat.count = count();
    return flat;
  }

 private:
  int64_t count_;
  std::vector<int64_t> bytes_;  // per operand
  std::vector<int64_t> no_decay_;
  DeviceArray<int64_t> edges_;
};

}  // namespace lockstep::cuda
