// sum and mean of floating tensors, in fp32 whatever the storage type. The order of additions is that of
// sums.h.
#include <algorithm>

#include "backend/cpu/storage.h"
#include "backend/cpu/sums.h"
#include "ops/reduce_axes.h"

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

template <bool kMean>
class Sum : public Kernel {
 public:
  Sum(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), type_(graph.type(node.outputs[0])) {
    const Shape& shape = graph.type(node.inputs[0]).shape;
    passes_ = sum_passes(shape, reduced_axes(shape, node.attributes));
    if (kMean && type_.shape.numel() > 0) divisor_ = static_cast<float>(shape.numel() / type_.shape.numel());
    if (type_.dtype != DType::kF32) buffers_ = context.pool.threads() * StoredTerms::kBuffer;
    for (const SumShape& pass : passes_) {
      results_ = std::max(results_, pass.outer * pass.inner);
      partials_ = std::max(partials_, sum_workspace(pass));
    }
  }

  // Thread buffers, then the results of alternate passes, then partial sums.
  int64_t workspace_bytes() const override {
    return (buffers_ + 2 * results_ + partials_) * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    auto* buffers = static_cast<float*>(args.workspace);
    float* results[2] = {buffers + buffers_, buffers + buffers_ + results_};
    float* partials = results[1] + results_;
    const float* from = nullptr;
    for (size_t i = 0; i < passes_.size(); ++i) {
      const bool last = i + 1 == passes_.size();
      float* to = last && type_.dtype == DType::kF32 ? static_cast<float*>(args.outputs[0]) : results[i % 2];
      if (i > 0)
        sum_terms(context_, passes_[i], FloatTerms(from), to, partials);
      else if (type_.dtype == DType::kF32)
        sum_terms(context_, passes_[i], FloatTerms(static_cast<const float*>(args.inputs[0])), to, partials);
      else
        sum_terms(context_, passes_[i], StoredTerms(context_.simd, type_.dtype, args.inputs[0], buffers), to,
                  partials);
      from = to;
    }
    finish(const_cast<float*>(from), args.outputs[0]);
  }

 private:
  void finish(float* sums, void* out) const {
    if (!kMean && type_.dtype == DType::kF32) return;
    for_rows(context_, type_.shape.numel(), kTaskElements, [&](int64_t begin, int64_t end) {
      const auto divide = context_.simd.pointwise.tile_scalar[static_cast<int>(Scalar::div)];
      if (kMean) divide(sums + begin, sums + begin, divisor_, end - begin);
      write_floats(context_.simd, type_.dtype, out, begin, end - begin, sums + begin);
    });
  }

  CpuContext context_;
  Type type_;
  std::vector<SumShape> passes_;
  float divisor_ = 1;
  int64_t buffers_ = 0;
  int64_t results_ = 0;
  int64_t partials_ = 0;
};

}  // namespace

KernelDef sum_kernel() { return {"sum", "cpu.sum", refuse_unless_floating, make_kernel<Sum<false>>}; }
KernelDef mean_kernel() { return {"mean", "cpu.mean", refuse_unless_floating, make_kernel<Sum<true>>}; }

}  // namespace lockstep::cpu
