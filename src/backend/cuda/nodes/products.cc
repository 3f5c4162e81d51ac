// matmul through cuBLASLt, by the algorithm that product_choices.h finds.
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/product_choices.h"
#include "backend/cuda/products/matmul_plan.h"

namespace lockstep::cuda {
namespace {

constexpr int64_t kMostWorkspace = int64_t{32} << 20;

MatmulShape shape_of_operands(const Graph& graph, const Node& node, const Device& device) {
  const Shape& a = in_type(graph, node, 0).shape;
  const Shape& b = in_type(graph, node, 1).shape;
  const Type& result = out_type(graph, node, 0);
  MatmulShape shape;
  shape.transpose_a = node.op->name == "matmul" && node.attributes.flag("transpose_a");
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
  shape.tf32 = device.tf32() && shape.dtype == DType::kF32;
  return shape;
}

// linear and matmul_gelu_grad: a product whose epilogue does the rest.
MatmulShape shape_with_epilogue(const Graph& graph, const Node& node, const Device& device) {
  MatmulShape shape = shape_of_operands(graph, node, device);
  shape.bias = shape.result;
  shape.epilogue = node.op->name == "linear" ? Epilogue::kBias : Epilogue::kDGelu;
  shape.accumulate = node.inputs.size() == 4;
  return shape;
}

MatmulShape shape_of(const Graph& graph, const Node& node, const Device& device) {
  if (node.op->name != "matmul") return shape_with_epilogue(graph, node, device);
  MatmulShape shape = shape_of_operands(graph, node, device);
  shape.accumulate = node.inputs.size() == 3;
  return shape;
}

bool is_empty(const MatmulShape& shape) { return shape.batch * shape.m * shape.n * shape.k == 0; }

class Matmul : public NodeKernel {
 public:
  Matmul(const Graph& graph, const Node& node, Device& device)
      : bytes_(out_type(graph, node, 0).bytes()), shape_(shape_of(graph, node, device)) {
    if (is_empty(shape_)) return;
    plan_ = std::make_unique<MatmulPlan>(device.products(), shape_, kMostWorkspace);
    choice_ = device.product_choices().choose(*plan_).value();
  }

  int64_t workspace_bytes() const override { return choice_.workspace; }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    MatmulArgs product{.a = args.inputs[0], .b = args.inputs[1], .d = args.outputs[0]};
    if (shape_.epilogue == Epilogue::kBias) product.bias = args.inputs[2];
    if (shape_.epilogue == Epilogue::kDGelu) product.aux = args.inputs[2];
    if (shape_.accumulate) product.c = args.inputs.back();
    if (plan_ != nullptr)
      plan_->run(stream, product, choice_, args.workspace);
    else if (shape_.accumulate)
      copy_on(stream, args.outputs[0], args.inputs.back(), bytes_);
    else if (bytes_ > 0)
      require(cudaMemsetAsync(args.outputs[0], 0, static_cast<size_t>(bytes_), stream), "an empty product");
  }

 private:
  int64_t bytes_;
  MatmulShape shape_;
  std::unique_ptr<MatmulPlan> plan_;  // none where there is nothing to multiply
  AlgorithmChoice choice_;
};

std::string refuse(const Graph& graph, const Node& node, Device& device) {
  const MatmulShape shape = shape_of(graph, node, device);
  if (is_empty(shape)) {
    if (shape.epilogue == Epilogue::kNone) return "";
    return "there is nothing to multiply";
  }
  if (device.product_choices().has(shape)) return "";
  if (device.product_choices().choose(MatmulPlan(device.products(), shape, kMostWorkspace))) return "";
  return fmt::format("cuBLASLt has no algorithm without atomics for {}", shape.text());
}

// Tries the algorithms, while plans of other libraries are made beside.
void prepare(const Graph& graph, const Node& node, Device& device) {
  const MatmulShape shape = shape_of(graph, node, device);
  if (is_empty(shape) || device.product_choices().has(shape)) return;
  device.product_choices().choose(MatmulPlan(device.products(), shape, kMostWorkspace), true);
}

}  // namespace

void add_products(KernelDefs& defs) {
  for (const std::string_view op : {"matmul", "linear", "matmul_gelu_grad"})
    defs.push_back({op, "cuda.matmul", refuse, make_kernel<Matmul>, prepare});
}

}  // namespace lockstep::cuda
