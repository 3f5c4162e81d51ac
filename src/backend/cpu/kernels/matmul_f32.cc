// matmul in f32 through oneDNN tiles.
#include <cstring>

#include "backend/cpu/gemm.h"

namespace lockstep::cpu {
namespace {

class MatmulF32 : public Kernel {
 public:
  MatmulF32(const Graph& graph, const Node& node, const CpuContext& context) : context_(context) {
    const Shape& a = graph.type(node.inputs[0]).shape;
    const Shape& b = graph.type(node.inputs[1]).shape;
    const Type& out = graph.type(node.outputs[0]);
    shape_.transpose_a = node.attributes.flag("transpose_a");
    shape_.transpose_b = node.attributes.flag("transpose_b");
    shape_.m = out.shape[-2];
    shape_.n = out.shape[-1];
    shape_.k = shape_.transpose_a ? a[-2] : a[-1];
    batch_ = a.product(0, a.rank() - 2);
    if (b.rank() == 2 && !shape_.transpose_a) {  // the batch axes of a are rows
      shape_.m *= batch_;
      batch_ = 1;
    }
    stride_b_ = b.rank() == 2 ? 0 : shape_.k * shape_.n;
    accumulate_ = node.inputs.size() == 3;
    out_bytes_ = out.bytes();
  }

  void run(const KernelArgs& args) override {
    auto* c = static_cast<float*>(args.outputs[0]);
    if (accumulate_ && args.inputs[2] != args.outputs[0])
      std::memcpy(c, args.inputs[2], static_cast<size_t>(out_bytes_));
    gemm_f32_batched(context_, shape_, batch_, static_cast<const float*>(args.inputs[0]), shape_.m * shape_.k,
                     static_cast<const float*>(args.inputs[1]), stride_b_, accumulate_ ? 1.0f : 0.0f, c,
                     shape_.m * shape_.n);
  }

 private:
  CpuContext context_;
  GemmShape shape_{};
  int64_t batch_ = 1;
  int64_t stride_b_ = 0;
  int64_t out_bytes_ = 0;
  bool accumulate_ = false;
};

}  // namespace

KernelDef matmul_f32_kernel() {
  return {"matmul", "cpu.matmul_f32", refuse_unless_f32, make_kernel<MatmulF32>};
}

}  // namespace lockstep::cpu
