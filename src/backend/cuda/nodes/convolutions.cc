// conv2d and its gradients.
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/convolution.h"
#include "ops/conv_shape.h"

namespace lockstep::cuda {
namespace {

ConvolutionShape::Axis axis_of(const WindowAxis& axis) {
  return {axis.input, axis.output, axis.kernel, axis.stride, axis.dilation, axis.before};
}

ConvolutionShape shape_of(const Graph& graph, const Node& node) {
  const ConvShape conv = conv_shape(graph, node);
  return {conv.batch,
          conv.channels,
          conv.outputs,
          conv.groups,
          axis_of(conv.window.rows),
          axis_of(conv.window.columns),
          in_type(graph, node, 0).dtype,
          out_type(graph, node, 0).dtype};
}

class Convolution : public NodeKernel {
 public:
  Convolution(const Graph& graph, const Node& node, Device&) : shape_(shape_of(graph, node)) {}

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

}  // namespace

void add_convolutions(KernelDefs& defs) {
  defs.push_back({"conv2d", "cuda.conv2d_plain", refuse_nothing, make_kernel<Convolution>});
  defs.push_back(
      {"conv2d_grad_input", "cuda.conv2d_grad_input_plain", refuse_nothing, make_kernel<GradInput>});
  defs.push_back(
      {"conv2d_grad_filter", "cuda.conv2d_grad_filter_plain", refuse_nothing, make_kernel<GradFilter>});
}

}  // namespace lockstep::cuda
