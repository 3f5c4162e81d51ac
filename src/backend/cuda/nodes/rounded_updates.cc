// sgd, adam, adamw and lion of parameters that are stored in bf16 (ops/rounded_update.h).
#include "backend/cuda/kernels/rounded_update.h"
#include "backend/cuda/nodes/optimizer_kernel.h"
#include "ops/rounded_update.h"

namespace lockstep::cuda {
namespace {

std::vector<DrawRange> draw_ranges(const Attributes& attributes) {
  std::vector<DrawRange> ranges;
  for (const DrawSegment& segment : draw_segments(attributes))
    ranges.push_back({segment.begin,
                      segment.first,
                      {result_key(segment.key, 0), result_key(segment.key, 1), result_key(segment.key, 2)}});
  return ranges;
}

class RoundedUpdate : public OptimizerKernel {
 protected:
  RoundedUpdate(const Graph& graph, const Node& node, Device& device)
      : OptimizerKernel(graph, node, device),
        buffers_(node.outputs.size() - 1),
        moments_(buffers_ > 0 ? out_type(graph, node, 1).dtype : DType::kBF16),
        rounding_(static_cast<size_t>(rounding_operand(graph, node.inputs))),
        ranges_(device, draw_ranges(node.attributes)) {}

  RoundedState state(const KernelArgs& args) const {
    const auto updated = [&](size_t result) {
      if (result > buffers_) return Updated{nullptr, nullptr};
      return Updated{args.inputs[result == 0 ? 0 : result + 1], args.outputs[result]};
    };
    return {updated(0), args.inputs[1], updated(1), updated(2), moments_, count()};
  }
  Draws draws(const KernelArgs& args) const {
    return {ranges_.data(), static_cast<int>(ranges_.size()), in<int64_t>(args, rounding_)};
  }

 private:
  size_t buffers_;  // of the optimizer
  DType moments_;
  size_t rounding_;
  DeviceArray<DrawRange> ranges_;
};

class RoundedSgd : public RoundedUpdate {
 public:
  RoundedSgd(const Graph& graph, const Node& node, Device& device)
      : RoundedUpdate(graph, node, device),
        momentum_(static_cast<float>(node.attributes.number("momentum"))),
        weight_decay_(static_cast<float>(node.attributes.number("weight_decay"))),
        nesterov_(node.attributes.flag("nesterov")) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    rounded_sgd(stream, state(args), scalars(args), no_decay(), draws(args), momentum_, nesterov_,
                weight_decay_);
  }

 private:
  float momentum_, weight_decay_;
  bool nesterov_;
};

class RoundedAdam : public RoundedUpdate {
 public:
  RoundedAdam(const Graph& graph, const Node& node, Device& device)
      : RoundedUpdate(graph, node, device),
        decoupled_(node.op->name == "adamw"),
        attributes_(adam_attributes(node.attributes)) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    rounded_adam(stream, state(args), scalars(args), no_decay(), draws(args), attributes_, decoupled_);
  }

 private:
  bool decoupled_;
  AdamAttributes attributes_;
};

class RoundedLion : public RoundedUpdate {
 public:
  RoundedLion(const Graph& graph, const Node& node, Device& device)
      : RoundedUpdate(graph, node, device), attributes_(adam_attributes(node.attributes)) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    rounded_lion(stream, state(args), scalars(args), no_decay(), draws(args), attributes_);
  }

 private:
  AdamAttributes attributes_;
};

std::string refuse(const Graph& graph, const Node& node, Device&) {
  return rounding_operand(graph, node.inputs) >= 0 ? "" : "parameters are not bf16";
}

}  // namespace

void add_rounded_updates(KernelDefs& defs) {
  defs.push_back({"sgd", "cuda.sgd_rounded", refuse, make_kernel<RoundedSgd>});
  defs.push_back({"adam", "cuda.adam_rounded", refuse, make_kernel<RoundedAdam>});
  defs.push_back({"adamw", "cuda.adamw_rounded", refuse, make_kernel<RoundedAdam>});
  defs.push_back({"lion", "cuda.lion_rounded", refuse, make_kernel<RoundedLion>});
}

}  // namespace lockstep::cuda
