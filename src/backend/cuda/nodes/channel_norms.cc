// batch_norm and group_norm, and their gradients: channels last.
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/channel_norm.h"
#include "backend/cuda/kernels/group_norm.h"

namespace lockstep::cuda {
namespace {

ChannelNormShape shape_of(const Type& x, const Type& weight, const Attributes& attributes) {
  const int64_t channels = x.shape[-1];
  return {channels == 0 ? 0 : x.shape.numel() / channels,
          channels,
          x.dtype,
          weight.dtype == DType::kF32,
          attributes.flag("training"),
          attributes.flag("relu")};
}

class BatchNorm : public NodeKernel {
 public:
  BatchNorm(const Graph& graph, const Node& node, Device&)
      : shape_(shape_of(in_type(graph, node, 0), in_type(graph, node, 1), node.attributes)),
        epsilon_(node.attributes.number("epsilon")) {}
  int64_t workspace_bytes() const override { return channel_norm_workspace(shape_); }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    ChannelNormForward norm{};
    norm.x = args.inputs[0];
    norm.weight = args.inputs[1];
    norm.bias = args.inputs[2];
    if (!shape_.training) {
      norm.running_mean = in(args, 3);
      norm.running_variance = in(args, 4);
    }
    norm.y = args.outputs[0];
    norm.mean = out(args, 1);
    norm.rstd = out(args, 2);
    norm.variance = shape_.training ? out(args, 3) : nullptr;
    norm.epsilon = epsilon_;
    channel_norm(stream, shape_, norm, args.workspace);
  }

 private:
  ChannelNormShape shape_;
  double epsilon_;
};

class BatchNormGrad : public NodeKernel {
 public:
  BatchNormGrad(const Graph& graph, const Node& node, Device&)
      : shape_(shape_of(in_type(graph, node, 1), in_type(graph, node, 2), node.attributes)) {}
  int64_t workspace_bytes() const override { return channel_norm_workspace(shape_); }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    ChannelNormBackward norm{};
    norm.dy = args.inputs[0];
    norm.x = args.inputs[1];
    norm.weight = args.inputs[2];
    norm.mean = in(args, 3);
    norm.rstd = in(args, 4);
    norm.bias = shape_.relu ? args.inputs[5] : nullptr;
    norm.dx = args.outputs[0];
    norm.dweight = args.outputs[1];
    norm.dbias = args.outputs[2];
    channel_norm_grad(stream, shape_, norm, args.workspace);
  }

 private:
  ChannelNormShape shape_;
};

GroupNormShape group_shape(const Type& x, const Type& weight, const Attributes& attributes) {
  const int64_t channels = x.shape[-1];
  return {x.shape[0], x.shape.product(1, x.shape.rank() - 1),
          channels,   attributes.integer("groups"),
          x.dtype,    weight.dtype == DType::kF32};
}

class GroupNorm : public NodeKernel {
 public:
  GroupNorm(const Graph& graph, const Node& node, Device&)
      : shape_(group_shape(in_type(graph, node, 0), in_type(graph, node, 1), node.attributes)),
        epsilon_(node.attributes.number("epsilon")) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    group_norm(stream, shape_, args.inputs[0], args.inputs[1], args.inputs[2], epsilon_, args.outputs[0],
               out(args, 1), out(args, 2));
  }

 private:
  GroupNormShape shape_;
  double epsilon_;
};

// (dy, x, weight, mean, rstd) -> (dx, dweight, dbias).
class GroupNormGrad : public NodeKernel {
 public:
  GroupNormGrad(const Graph& graph, const Node& node, Device&)
      : shape_(group_shape(in_type(graph, node, 1), in_type(graph, node, 2), node.attributes)) {}
  int64_t workspace_bytes() const override { return group_norm_grad_workspace(shape_); }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    group_norm_grad(stream, shape_, args.inputs[0], args.inputs[1], args.inputs[2], in(args, 3), in(args, 4),
                    args.outputs[0], args.outputs[1], args.outputs[2], args.workspace);
  }

 private:
  GroupNormShape shape_;
};

}  // namespace

void add_channel_norms(KernelDefs& defs) {
  defs.push_back({"batch_norm", "cuda.batch_norm", refuse_nothing, make_kernel<BatchNorm>});
  defs.push_back({"batch_norm_grad", "cuda.batch_norm_grad", refuse_nothing, make_kernel<BatchNormGrad>});
  defs.push_back({"group_norm", "cuda.group_norm", refuse_nothing, make_kernel<GroupNorm>});
  defs.push_back({"group_norm_grad", "cuda.group_norm_grad", refuse_nothing, make_kernel<GroupNormGrad>});
}

}  // namespace lockstep::cuda
