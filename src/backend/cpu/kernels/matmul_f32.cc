// matmul in f32 through oneDNN tiles.
#include <algorithm>
#include <cstring>

#include "backend/cpu/matmul_shape.h"
#include "backend/cpu/transpose_block.h"

namespace lockstep::cpu {
namespace {

// oneDNN packs a transposed right operand again for every tile, at about 8 % of the product (204 against 220
// GFLOP/s at 4096x256x1024 on two Zen 4 cores); above this many rows transposing it once is cheaper.
constexpr int64_t kRowsWorthTransposing = 2048;
constexpr int64_t kTransposeTile = 64;

class MatmulF32 : public Kernel {
 public:
  MatmulF32(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        shape_(matmul_shape(graph, node)),
        out_bytes_(graph.type(node.outputs[0]).bytes()) {
    prepare_gemm();
    transposes_ = shape_.gemm.transpose_b && shape_.batch == 1 && shape_.gemm.m >= kRowsWorthTransposing;
  }

  int64_t workspace_bytes() const override {
    return transposes_ ? shape_.gemm.k * shape_.gemm.n * static_cast<int64_t>(sizeof(float)) : 0;
  }

  KernelMemory memory() const override { return gemm_memory(context_, shape_.gemm); }

  void run(const KernelArgs& args) override {
    auto* c = static_cast<float*>(args.outputs[0]);
    if (shape_.accumulate && args.inputs[2] != args.outputs[0])
      std::memcpy(c, args.inputs[2], static_cast<size_t>(out_bytes_));
    GemmShape gemm = shape_.gemm;
    const auto* b = static_cast<const float*>(args.inputs[1]);
    if (transposes_) {
      b = transposed(b, static_cast<float*>(args.workspace));
      gemm.transpose_b = false;
    }
    gemm_f32_batched(context_, gemm, shape_.batch, static_cast<const float*>(args.inputs[0]),
                     shape_.stride_a(), b, shape_.stride_b, shape_.accumulate ? 1.0f : 0.0f, c,
                     shape_.stride_c());
  }

 private:
  // b is [N, K]; the result [K, N].
  const float* transposed(const float* b, float* to) const {
    const int64_t n = shape_.gemm.n;
    const int64_t k = shape_.gemm.k;
    for_rows(context_, n, kTransposeTile, [&](int64_t begin, int64_t end) {
      for (int64_t column = 0; column < k; column += kTransposeTile)
        transpose_block(sizeof(float), to + column * n + begin, n, b + begin * k + column, k, end - begin,
                        std::min(kTransposeTile, k - column));
    });
    return to;
  }

  CpuContext context_;
  MatmulShape shape_;
  int64_t out_bytes_;
  bool transposes_;
};

}  // namespace

KernelDef matmul_f32_kernel() {
  return {"matmul", "cpu.matmul_f32", refuse_unless_f32, make_kernel<MatmulF32>};
}

}  // namespace lockstep::cpu
