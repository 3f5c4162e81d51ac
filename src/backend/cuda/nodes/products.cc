// matmul through cuBLASLt. The first algorithm that the library proposes and that sums in one place is taken:
// the choice depends on the shape, the library and the device alone, and so do the bits.
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/products/matmul_plan.h"

namespace lockstep::cuda {
namespace {

constexpr int64_t kMostWorkspace = int64_t{32} << 20;
constexpr int kProposals = 8;

MatmulShape shape_of(const Graph& graph, const Node& node) {
  const Shape& a = in_type(graph, node, 0).shape;
  const Shape& b = in_type(graph, node, 1).shape;
  const Type& result = out_type(graph, node, 0);
  MatmulShape shape;
  shape.transpose_a = node.attributes.flag("transpose_a");
  shape.transpose_b = node.attributes.flag("transpose_b");
  shape.m = result.shape[-2];
  shape.n = result.shape[-1];
  shape.k = shape.transpose_a ? a[-2] : a[-1];
  shape.batch = a.product(0, a.rank() - 2);
  if (b.rank() == 2 && !shape.transpose_a) {  // the batch axes of a are rows
    shape.m *= shape.batch;
    shape.batch = 1;
  }
  shape.a_stride = shape.m * shape.k;
  shape.b_stride = b.rank() == 2 ? 0 : shape.k * shape.n;
  shape.d_stride = shape.m * shape.n;
  shape.dtype = in_type(graph, node, 0).dtype;
  shape.result = result.dtype;
  shape.accumulate = node.inputs.size() == 3;
  return shape;
}

bool is_empty(const MatmulShape& shape) { return shape.batch * shape.m * shape.n * shape.k == 0; }

class Matmul : public NodeKernel {
 public:
  Matmul(const Graph& graph, const Node& node, Device& device)
      : bytes_(out_type(graph, node, 0).bytes()), accumulate_(node.inputs.size() == 3) {
    const MatmulShape shape = shape_of(graph, node);
    if (is_empty(shape)) return;
    plan_ = std::make_unique<MatmulPlan>(device.products(), shape, kMostWorkspace);
    choice_ = plan_->candidates(kProposals, {}).at(0);
  }

  int64_t workspace_bytes() const override { return choice_.workspace; }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    if (accumulate_) copy_on(stream, args.outputs[0], args.inputs[2], bytes_);
    if (plan_ != nullptr)
      plan_->run(stream, {.a = args.inputs[0], .b = args.inputs[1], .d = args.outputs[0]}, choice_,
                 args.workspace);
    else if (!accumulate_ && bytes_ > 0)
      require(cudaMemsetAsync(args.outputs[0], 0, static_cast<size_t>(bytes_), stream), "an empty product");
  }

 private:
  int64_t bytes_;
  bool accumulate_;
  std::unique_ptr<MatmulPlan> plan_;  // none where there is nothing to multiply
  AlgorithmChoice choice_;
};

std::string refuse(const Graph& graph, const Node& node, Device& device) {
  const MatmulShape shape = shape_of(graph, node);
  if (is_empty(shape)) return "";
  const MatmulPlan plan(device.products(), shape, kMostWorkspace);
  if (!plan.candidates(kProposals, {}).empty()) return "";
  return fmt::format("cuBLASLt has no algorithm without atomics for {}", shape.text());
}

}  // namespace

void add_products(KernelDefs& defs) {
  defs.push_back({"matmul", "cuda.matmul", refuse, make_kernel<Matmul>});
}

}  // namespace lockstep::cuda
