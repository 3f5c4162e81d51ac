// sum and mean of floating tensors, in fp32 whatever the storage type. The order of additions is that of
// sums.h.
#include "backend/cpu/storage.h"
#include "backend/cpu/summation.h"

namespace lockstep::cpu {
namespace {

std::string refuse_unless_floating(const Graph& graph, const Node& node) {
  const DType dtype = graph.type(node.inputs[0]).dtype;
  return is_floating(dtype) ? "" : fmt::format("{} is not a floating type", name_of(dtype));
}

// 16-bit terms, converted range by range into one buffer per thread.
class StoredTerms : public TermSource {
 public:
  StoredTerms(const Simd& simd, DType dtype, const void* data, float* buffers)
      : simd_(simd), dtype_(dtype), data_(data), buffers_(buffers) {}
  const float* terms(int64_t begin, int64_t count, int thread) const override {
    return read_floats(simd_, dtype_, data_, begin, count, buffers_ + thread * kBuffer);
  }
  int64_t largest() const override { return kBuffer; }

  static constexpr int64_t kBuffer = 4 * kSumPiece;

 private:
  const Simd& simd_;
  DType dtype_;
  const void* data_;
  float* buffers_;
};

class Sum : public Kernel {
 public:
  Sum(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), dtype_(graph.type(node.inputs[0]).dtype), summation_(graph, node, context) {
    if (dtype_ != DType::kF32) buffers_ = context.pool.threads() * StoredTerms::kBuffer;
  }

  int64_t workspace_bytes() const override {
    return (buffers_ + summation_.workspace_floats()) * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    auto* buffers = static_cast<float*>(args.workspace);
    if (dtype_ == DType::kF32)
      summation_.run(FloatTerms(static_cast<const float*>(args.inputs[0])), args.outputs[0], buffers);
    else
      summation_.run(StoredTerms(context_.simd, dtype_, args.inputs[0], buffers), args.outputs[0],
                     buffers + buffers_);
  }

 private:
  CpuContext context_;
  DType dtype_;
  Summation summation_;
  int64_t buffers_ = 0;  // one per thread, before the summation's own workspace
};

}  // namespace

KernelDef sum_kernel() { return {"sum", "cpu.sum", refuse_unless_floating, make_kernel<Sum>}; }
KernelDef mean_kernel() { return {"mean", "cpu.mean", refuse_unless_floating, make_kernel<Sum>}; }

}  // namespace lockstep::cpu
