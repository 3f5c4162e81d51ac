// matmul in f32 through oneDNN tiles.
#include <cstring>

#include "backend/cpu/matmul_shape.h"

namespace lockstep::cpu {
namespace {

class MatmulF32 : public Kernel {
 public:
  MatmulF32(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        shape_(matmul_shape(graph, node)),
        out_bytes_(graph.type(node.outputs[0]).bytes()) {}

  void run(const KernelArgs& args) override {
    auto* c = static_cast<float*>(args.outputs[0]);
    if (shape_.accumulate && args.inputs[2] != args.outputs[0])
      std::memcpy(c, args.inputs[2], static_cast<size_t>(out_bytes_));
    gemm_f32_batched(context_, shape_.gemm, shape_.batch, static_cast<const float*>(args.inputs[0]),
                     shape_.stride_a(), static_cast<const float*>(args.inputs[1]), shape_.stride_b,
                     shape_.accumulate ? 1.0f : 0.0f, c, shape_.stride_c());
  }

 private:
  CpuContext context_;
  MatmulShape shape_;
  int64_t out_bytes_;
};

}  // namespace

KernelDef matmul_f32_kernel() {
  return {"matmul", "cpu.matmul_f32", refuse_unless_f32, make_kernel<MatmulF32>};
}

}  // namespace lockstep::cpu
