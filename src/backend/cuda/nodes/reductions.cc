// sum, mean, max, argmax and softmax over axes.
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/column_sums.h"
#include "backend/cuda/kernels/softmax.h"
#include "backend/cuda/nodes/sum_plan.h"
#include "ops/axis_pieces.h"
#include "ops/reduce_axes.h"

namespace lockstep::cuda {
namespace {

ReducedShape reduced(const ReductionSplit& split) { return {split.outer, split.reduced, split.inner}; }

class Sum : public NodeKernel {
 public:
  Sum(const Graph& graph, const Node& node, Device&) : plan_(graph, node) {}
  int64_t workspace_bytes() const override { return plan_.workspace_bytes(); }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    plan_.run(stream, args.inputs[0], args.outputs[0], args.workspace);
  }

 private:
  SumPlan plan_;
};

class Max : public NodeKernel {
 public:
  Max(const Graph& graph, const Node& node, Device&)
      : gradient_(node.op->name == "max_grad"),
        positions_(node.op->name == "argmax"),
        dtype_(in_type(graph, node, 0).dtype) {
    const Shape& x = in_type(graph, node, 0).shape;
    const std::vector<int> axes =
        positions_ ? std::vector<int>{piece_axis(x, node.attributes)} : reduced_axes(x, node.attributes);
    shape_ = reduced(split_reduction(x, axes));
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    if (gradient_)
      max_axis_grad(stream, shape_, dtype_, args.inputs[0], args.inputs[1], args.outputs[0]);
    else if (positions_)
      max_axis(stream, shape_, dtype_, args.inputs[0], nullptr, out<int32_t>(args, 0));
    else
      max_axis(stream, shape_, dtype_, args.inputs[0], args.outputs[0], nullptr);
  }

 private:
  bool gradient_, positions_;
  DType dtype_;
  ReducedShape shape_;
};

class Softmax : public NodeKernel {
 public:
  Softmax(const Graph& graph, const Node& node, Device&)
      : logarithm_(node.op->name.starts_with("log_")),
        gradient_(node.inputs.size() == 2),
        dtype_(in_type(graph, node, 0).dtype) {
    const Shape& x = in_type(graph, node, 0).shape;
    const int64_t wanted = node.attributes.integer("axis");
    const int axis = static_cast<int>(wanted < 0 ? wanted + x.rank() : wanted);
    shape_ = {x.product(0, axis), x[axis], x.product(axis + 1, x.rank())};
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    if (gradient_)
      softmax_grad(stream, shape_, dtype_, logarithm_, args.inputs[0], args.inputs[1], args.outputs[0]);
    else
      softmax(stream, shape_, dtype_, logarithm_, args.inputs[0], args.outputs[0]);
  }

 private:
  bool logarithm_, gradient_;
  DType dtype_;
  ReducedShape shape_;
};

}  // namespace

void add_reductions(KernelDefs& defs) {
  defs.push_back({"sum", "cuda.sum", refuse_unless_floating, make_kernel<Sum>});
  defs.push_back({"mean", "cuda.mean", refuse_unless_floating, make_kernel<Sum>});
  for (const std::string_view op : {"max", "max_grad", "argmax"})
    defs.push_back({op, "cuda.max", refuse_unless_floating, make_kernel<Max>});
  for (const std::string_view op : {"softmax", "softmax_grad", "log_softmax", "log_softmax_grad"})
    defs.push_back({op, "cuda.softmax", refuse_nothing, make_kernel<Softmax>});
}

}  // namespace lockstep::cuda
