// layer_norm and rms_norm, with and without the residual addition, and their gradients.
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/row_norm.h"

namespace lockstep::cuda {
namespace {

RowNormShape shape_of(const Type& x, const Type& weight, bool centered) {
  const int64_t columns = x.shape[-1];
  return {columns == 0 ? 0 : x.shape.numel() / columns, columns, x.dtype, weight.dtype == DType::kF32,
          centered};
}

class RowNorm : public NodeKernel {
 public:
  RowNorm(const Graph& graph, const Node& node, Device&)
      : adds_(node.op->name.starts_with("add_")),
        shape_(shape_of(in_type(graph, node, 0), in_type(graph, node, adds_ ? 2 : 1),
                        node.op->name.ends_with("layer_norm"))),
        epsilon_(static_cast<float>(node.attributes.number("epsilon"))) {}

 protected:
  // (x[, r], weight[, bias]) -> ([sum, ]y[, mean], rstd).
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    const size_t weight = adds_ ? 2 : 1, y = adds_ ? 1 : 0;
    RowNormForward norm{};
    norm.x = args.inputs[0];
    norm.residual = adds_ ? args.inputs[1] : nullptr;
    norm.weight = args.inputs[weight];
    norm.bias = shape_.centered ? args.inputs[weight + 1] : nullptr;
    norm.sum = adds_ ? args.outputs[0] : nullptr;
    norm.y = args.outputs[y];
    norm.mean = shape_.centered ? out(args, y + 1) : nullptr;
    norm.rstd = out(args, y + (shape_.centered ? 2 : 1));
    norm.epsilon = epsilon_;
    row_norm(stream, shape_, norm);
  }

 private:
  bool adds_;
  RowNormShape shape_;
  float epsilon_;
};

class RowNormGrad : public NodeKernel {
 public:
  RowNormGrad(const Graph& graph, const Node& node, Device&)
      : shape_(
            shape_of(in_type(graph, node, 1), in_type(graph, node, 2), node.op->name == "layer_norm_grad")),
        residual_(shape_.centered ? 5 : 4),
        has_residual_(node.inputs.size() > residual_) {}
  int64_t workspace_bytes() const override { return row_norm_grad_workspace(shape_); }

 protected:
  // (dy, x, weight[, mean], rstd[, residual]) -> (dx, dweight[, dbias]).
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    RowNormBackward norm{};
    norm.dy = args.inputs[0];
    norm.x = args.inputs[1];
    norm.weight = args.inputs[2];
    norm.mean = shape_.centered ? in(args, 3) : nullptr;
    norm.rstd = in(args, shape_.centered ? 4 : 3);
    norm.residual = has_residual_ ? args.inputs[residual_] : nullptr;
    norm.dx = args.outputs[0];
    norm.dweight = args.outputs[1];
    norm.dbias = shape_.centered ? args.outputs[2] : nullptr;
    row_norm_grad(stream, shape_, norm, args.workspace);
  }

 private:
  RowNormShape shape_;
  size_t residual_;
  bool has_residual_;
};

}  // namespace

void add_row_norms(KernelDefs& defs) {
  for (const std::string_view op : {"layer_norm", "rms_norm", "add_layer_norm", "add_rms_norm"})
    defs.push_back({op, "cuda.row_norm", refuse_nothing, make_kernel<RowNorm>});
  for (const std::string_view op : {"layer_norm_grad", "rms_norm_grad"})
    defs.push_back({op, "cuda.row_norm_grad", refuse_nothing, make_kernel<RowNormGrad>});
}

}  // namespace lockstep::cuda
