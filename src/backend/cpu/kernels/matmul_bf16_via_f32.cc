// matmul of bf16 operands on processors without a bf16 dot product: operands are widened into the workspace,
// multiplied in f32, and the sums rounded once where the result is bf16.
#include <algorithm>

#include "backend/cpu/matmul_shape.h"
#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

std::string refuse(const Graph& graph, const Node& node) {
  return graph.type(node.inputs[0]).dtype == DType::kBF16 ? "" : "operands are not bf16";
}

int64_t aligned(int64_t elements) { return ceil_div(elements, 16) * 16; }

class MatmulBf16ViaF32 : public Kernel {
 public:
  MatmulBf16ViaF32(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        shape_(matmul_shape(graph, node)),
        a_numel_(graph.type(node.inputs[0]).shape.numel()),
        b_numel_(graph.type(node.inputs[1]).shape.numel()),
        c_numel_(graph.type(node.outputs[0]).shape.numel()),
        round_(graph.type(node.outputs[0]).dtype == DType::kBF16) {}

  int64_t workspace_bytes() const override {
    return 4 * (aligned(a_numel_) + aligned(b_numel_) + (round_ ? c_numel_ : 0));
  }

  void run(const KernelArgs& args) override {
    auto* a = static_cast<float*>(args.workspace);
    float* b = a + aligned(a_numel_);
    float* c = round_ ? b + aligned(b_numel_) : static_cast<float*>(args.outputs[0]);
    widen(a, args.inputs[0], a_numel_);
    widen(b, args.inputs[1], b_numel_);
    if (shape_.accumulate && round_) widen(c, args.inputs[2], c_numel_);
    if (shape_.accumulate && !round_ && args.inputs[2] != args.outputs[0])
      for_rows(context_, c_numel_, kTaskElements, [&](int64_t begin, int64_t end) {
        std::copy_n(static_cast<const float*>(args.inputs[2]) + begin, end - begin, c + begin);
      });
    gemm_f32_batched(context_, shape_.gemm, shape_.batch, a, shape_.stride_a(), b, shape_.stride_b,
                     shape_.accumulate ? 1.0f : 0.0f, c, shape_.stride_c());
    if (!round_) return;
    for_rows(context_, c_numel_, kTaskElements, [&](int64_t begin, int64_t end) {
      context_.simd.pointwise.to_bf16(static_cast<uint16_t*>(args.outputs[0]) + begin, c + begin,
                                      end - begin);
    });
  }

 private:
  void widen(float* to, const void* from, int64_t count) {
    for_rows(context_, count, kTaskElements, [&](int64_t begin, int64_t end) {
      context_.simd.pointwise.from_bf16(to + begin, static_cast<const uint16_t*>(from) + begin, end - begin);
    });
  }

  CpuContext context_;
  MatmulShape shape_;
  int64_t a_numel_, b_numel_, c_numel_;
  bool round_;
};

}  // namespace

KernelDef matmul_bf16_via_f32_kernel() {
  return {"matmul", "cpu.matmul_bf16_via_f32", refuse, make_kernel<MatmulBf16ViaF32>};
}

}  // namespace lockstep::cpu
