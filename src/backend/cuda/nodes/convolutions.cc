// conv2d and its gradients: through cuDNN where it has an engine that serves, else by our kernels.
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/convolution.h"
#include "ops/conv_shape.h"
#ifdef LOCKSTEP_CUDNN_FRONTEND
#include "backend/cuda/cudnn/convolution_plan.h"
#include "backend/cuda/nodes/kept_plans.h"
#endif

namespace lockstep::cuda {
namespace {

ConvolutionShape::Axis axis_of(const WindowAxis& axis) {
  return {axis.input, axis.output, axis.kernel, axis.stride, axis.dilation, axis.before};
}

ConvolutionShape shape_of(const Graph& graph, const Node& node, const Device& device) {
  const ConvShape conv = conv_shape(graph, node);
  return {conv.batch,
          conv.channels,
          conv.outputs,
          conv.groups,
          axis_of(conv.window.rows),
          axis_of(conv.window.columns),
          in_type(graph, node, 0).dtype,
          out_type(graph, node, 0).dtype,
          device.tf32()};
}

class Convolution : public NodeKernel {
 public:
  Convolution(const Graph& graph, const Node& node, Device& device) : shape_(shape_of(graph, node, device)) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    convolution(stream, shape_, args.inputs[0], args.inputs[1], args.outputs[0]);
  }
  ConvolutionShape shape_;
};

class GradInput : public Convolution {
  using Convolution::Convolution;

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    convolution_grad_input(stream, shape_, args.inputs[0], args.inputs[1], args.outputs[0]);
  }
};

class GradFilter : public Convolution {
 public:
  using Convolution::Convolution;
  int64_t workspace_bytes() const override { return convolution_grad_filter_workspace(shape_); }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    convolution_grad_filter(stream, shape_, args.inputs[0], args.inputs[1], args.outputs[0], args.workspace);
  }
};

#ifdef LOCKSTEP_CUDNN_FRONTEND

ConvolutionPlan::Kind kind_of(const Node& node) {
  if (node.op->name == "conv2d_grad_input") return ConvolutionPlan::Kind::kGradInput;
  if (node.op->name == "conv2d_grad_filter") return ConvolutionPlan::Kind::kGradFilter;
  return ConvolutionPlan::Kind::kForward;
}

std::string describe(const ConvolutionShape& s, ConvolutionPlan::Kind kind) {
  const auto axis = [](const ConvolutionShape::Axis& a) {
    return fmt::format("{} {} {} {} {} {}", a.input, a.output, a.kernel, a.stride, a.dilation, a.before);
  };
  return fmt::format("convolution {} {} {} {} {} {} {} {} {}{}", static_cast<int>(kind), s.batch, s.channels,
                     s.outputs, s.groups, axis(s.rows), axis(s.columns), name_of(s.dtype),
                     name_of(s.filter_dtype), s.tf32 ? " tf32" : "");
}

auto maker(const ConvolutionShape& s, ConvolutionPlan::Kind kind) {
  return [s, kind](cudnnHandle_t handle) { return ConvolutionPlan(handle, s, kind); };
}

KeptPlan<ConvolutionPlan> plan_for(Device& device, const ConvolutionShape& s, ConvolutionPlan::Kind kind) {
  return device.kept_plans().get<ConvolutionPlan>(device, describe(s, kind), maker(s, kind));
}

class CudnnConvolution : public NodeKernel {
 public:
  CudnnConvolution(const Graph& graph, const Node& node, Device& device)
      : kept_(plan_for(device, shape_of(graph, node, device), kind_of(node))) {}

  int64_t workspace_bytes() const override { return kept_.plan->workspace_bytes(); }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    set_cudnn_stream(kept_.handle, stream);
    kept_.plan->run(kept_.handle, args.inputs[0], args.inputs[1], args.outputs[0], args.workspace);
  }

 private:
  KeptPlan<ConvolutionPlan> kept_;
};

bool is_empty(const ConvolutionShape& s) {
  return s.batch * s.rows.output * s.columns.output * s.outputs * s.channels == 0;
}

std::string refuse_cudnn(const Graph& graph, const Node& node, Device& device) {
  if (!device.cudnn_refusal().empty()) return device.cudnn_refusal();
  const ConvolutionShape s = shape_of(graph, node, device);
  if (is_empty(s)) return "there is nothing to convolve";
  try {
    plan_for(device, s, kind_of(node));
    return "";
  } catch (const DeviceError& error) {
    return error.what();
  }
}

void prepare_cudnn(const Graph& graph, const Node& node, Device& device) {
  const ConvolutionShape s = shape_of(graph, node, device);
  if (device.cudnn_refusal().empty() && !is_empty(s))
    device.kept_plans().start<ConvolutionPlan>(device, describe(s, kind_of(node)), maker(s, kind_of(node)));
}

#endif

}  // namespace

void add_convolutions(KernelDefs& defs) {
#ifdef LOCKSTEP_CUDNN_FRONTEND
  for (const std::string_view op : {"conv2d", "conv2d_grad_input", "conv2d_grad_filter"})
    defs.push_back(
        {op, "cuda.convolution_cudnn", refuse_cudnn, make_kernel<CudnnConvolution>, prepare_cudnn});
#endif
  defs.push_back({"conv2d", "cuda.conv2d_plain", refuse_nothing, make_kernel<Convolution>});
  defs.push_back(
      {"conv2d_grad_input", "cuda.conv2d_grad_input_plain", refuse_nothing, make_kernel<GradInput>});
  defs.push_back(
      {"conv2d_grad_filter", "cuda.conv2d_grad_filter_plain", refuse_nothing, make_kernel<GradFilter>});
}

}  // namespace lockstep::cuda
