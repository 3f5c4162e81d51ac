// matmul of a single row with a weight that is not trained: what a model that writes text does for every
// token. Reading the weight once is all the work there is (bench/generate.py); oneDNN's tiles would pack it
// first.
//
// Only @frozen inputs are taken: elsewhere a batch of one row must give the bits that it gives among others.
#include <algorithm>

#include "backend/cpu/float_staging.h"
#include "backend/cpu/matmul_shape.h"
#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

// Elements of the weight that a task reads: about 10 microseconds.
constexpr int64_t kElements = 1 << 16;
// Columns of a weight [K, N] that a task takes: two or more sweeps of the loops.
constexpr int64_t kColumns = 256;

std::string refuse(const Graph& graph, const Node& node) {
  const MatmulShape shape = matmul_shape(graph, node);
  if (shape.gemm.m != 1 || shape.batch != 1) return "there are several rows";
  if (shape.accumulate) return "it adds to its result";
  if (graph.producer(node.inputs[1]) >= 0 || graph.role(node.inputs[1]) != Role::kFrozen)
    return "the right operand is no frozen weight";
  const DType weight = graph.type(node.inputs[1]).dtype;
  if (weight != DType::kF32 && weight != DType::kBF16) return "the weight is neither f32 nor bf16";
  return "";
}

class Matvec : public Kernel {
 public:
  Matvec(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        shape_(matmul_shape(graph, node).gemm),
        weight_(graph.type(node.inputs[1]).dtype),
        staging_(context),
        row_(staging_.add(graph.type(node.inputs[0]))),
        out_(staging_.add(graph.type(node.outputs[0]))) {}

  int64_t workspace_bytes() const override { return staging_.bytes(); }

  void run(const KernelArgs& args) override {
    const float* x = staging_.read(row_, args.inputs[0], args.workspace);
    float* out = staging_.target(out_, args.outputs[0], args.workspace);
    const MatvecLoops& loops = context_.simd.matvec;
    const auto* wide = static_cast<const float*>(args.inputs[1]);
    const auto* narrow = static_cast<const uint16_t*>(args.inputs[1]);
    const bool f32 = weight_ == DType::kF32;
    const int64_t k = shape_.k, n = shape_.n;
    const int64_t grain =
        shape_.transpose_b ? std::max<int64_t>(1, kElements / std::max<int64_t>(1, k)) : kColumns;
    for_rows(context_, n, grain, [&](int64_t begin, int64_t end) {
      if (shape_.transpose_b)
        f32 ? loops.rows_f32(out, x, wide, k, begin, end) : loops.rows_bf16(out, x, narrow, k, begin, end);
      else
        f32 ? loops.columns_f32(out, x, wide, k, n, begin, end)
            : loops.columns_bf16(out, x, narrow, k, n, begin, end);
    });
    staging_.write(out_, args.outputs[0], args.workspace);
  }

 private:
  CpuContext context_;
  GemmShape shape_;
  DType weight_;
  FloatStaging staging_;
  int row_, out_;
};

}  // namespace

KernelDef matvec_kernel() { return {"matmul", "cpu.matvec", refuse, make_kernel<Matvec>}; }

}  // namespace lockstep::cpu
