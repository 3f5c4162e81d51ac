// cross_entropy, bce_with_logits and mse, and the gradients that are ops of their own.
#include "backend/cuda/kernels/losses.h"

#include <limits>
#include <optional>

#include "backend/cuda/kernel_def.h"

namespace lockstep::cuda {
namespace {

CrossEntropyShape rows_of(const Type& logits, const Attributes& attributes) {
  return {logits.shape[0], logits.shape[1], logits.dtype, static_cast<int32_t>(attributes.integer("ignore")),
          static_cast<float>(attributes.number("smoothing"))};
}

std::string refuse_labels(const Graph&, const Node& node, Device&) {
  const int64_t ignore = node.attributes.integer("ignore");
  const bool fits =
      ignore >= std::numeric_limits<int32_t>::min() && ignore <= std::numeric_limits<int32_t>::max();
  if (!fits) return fmt::format("ignore {} does not fit the labels' i32", ignore);
  if (node.op->name == "cross_entropy_grad" && node.attributes.integer("classes") > 0)
    return "the logits are columns of longer rows";
  const size_t operands = node.op->name == "cross_entropy" ? 2 : 4;
  return node.inputs.size() == operands ? "" : "rows have weights";
}

class CrossEntropy : public NodeKernel {
 public:
  CrossEntropy(const Graph& graph, const Node& node, Device& device)
      : shape_(rows_of(in_type(graph, node, 0), node.attributes)),
        bad_(device.faults(),
             [described = describe(graph, *node.op, node.inputs), shape = shape_](int64_t row) {
               return fmt::format(
                   "{}: row {} has a label outside [0, {}) that is not {}, which would ignore the row",
                   described, row, shape.classes, shape.ignore);
             }) {}
  int64_t workspace_bytes() const override { return cross_entropy_workspace(shape_); }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    cross_entropy(stream, shape_, args.inputs[0], in<int32_t>(args, 1), out(args, 0), out<int64_t>(args, 1),
                  out(args, 2), bad_.as<BadLabel>(), args.workspace);
  }

 private:
  CrossEntropyShape shape_;
  Faults::Place bad_;
};

class CrossEntropyGrad : public NodeKernel {
 public:
  CrossEntropyGrad(const Graph& graph, const Node& node, Device&)
      : shape_(rows_of(in_type(graph, node, 1), node.attributes)) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    cross_entropy_grad(stream, shape_, in(args, 0), args.inputs[1], in<int32_t>(args, 2), in(args, 3),
                       args.outputs[0]);
  }

 private:
  CrossEntropyShape shape_;
};

class PairLoss : public NodeKernel {
 public:
  PairLoss(const Graph& graph, const Node& node, Device&)
      : binary_(node.op->name == "bce_with_logits"),
        first_(in_type(graph, node, 0)),
        labels_float_(in_type(graph, node, 1).dtype == DType::kF32),
        weighted_(node.inputs.size() == 3) {}
  int64_t workspace_bytes() const override { return pair_loss_workspace(first_.shape.numel()); }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    const int64_t count = first_.shape.numel();
    if (binary_)
      bce_with_logits(stream, first_.dtype, args.inputs[0], args.inputs[1], labels_float_,
                      weighted_ ? in(args, 2) : nullptr, count, out(args, 0), out<int64_t>(args, 1),
                      args.workspace);
    else
      mse(stream, first_.dtype, args.inputs[0], args.inputs[1], count, out(args, 0), out<int64_t>(args, 1),
          args.workspace);
  }

 private:
  bool binary_;
  Type first_;
  bool labels_float_, weighted_;
};

std::string refuse_pairs(const Graph& graph, const Node& node, Device&) {
  if (node.op->name == "mse" && node.inputs.size() == 3) return "elements have weights";
  const DType first = in_type(graph, node, 0).dtype, second = in_type(graph, node, 1).dtype;
  const bool fits = second == first || (node.op->name == "bce_with_logits" && second == DType::kF32);
  return fits ? "" : fmt::format("operands are {} and {}", name_of(first), name_of(second));
}

class BceGrad : public NodeKernel {
 public:
  BceGrad(const Graph& graph, const Node& node, Device&)
      : logits_(in_type(graph, node, 1)),
        labels_float_(in_type(graph, node, 2).dtype == DType::kF32),
        weighted_(node.inputs.size() == 4) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    bce_with_logits_grad(stream, logits_.dtype, in(args, 0), args.inputs[1], args.inputs[2], labels_float_,
                         weighted_ ? in(args, 3) : nullptr, logits_.shape.numel(), args.outputs[0]);
  }

 private:
  Type logits_;
  bool labels_float_, weighted_;
};

}  // namespace

void add_losses(KernelDefs& defs) {
  defs.push_back({"cross_entropy", "cuda.cross_entropy", refuse_labels, make_kernel<CrossEntropy>});
  defs.push_back(
      {"cross_entropy_grad", "cuda.cross_entropy_grad", refuse_labels, make_kernel<CrossEntropyGrad>});
  defs.push_back({"bce_with_logits", "cuda.bce_with_logits", refuse_pairs, make_kernel<PairLoss>});
  defs.push_back({"bce_with_logits_grad", "cuda.bce_with_logits_grad", refuse_nothing, make_kernel<BceGrad>});
  defs.push_back({"mse", "cuda.mse", refuse_pairs, make_kernel<PairLoss>});
}

}  // namespace lockstep::cuda
