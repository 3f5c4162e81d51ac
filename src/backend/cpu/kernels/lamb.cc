// lamb: tensor by tensor, moments and update with block sums of both norms, then the scaled step.
#include "backend/cpu/optimizer_kernel.h"

namespace lockstep::cpu {
namespace {

constexpr int64_t kBlocksPerTask = kFlatTask / kNormBlock;

class Lamb : public OptimizerKernel {
 public:
  Lamb(const Graph& graph, const Node& node, const CpuContext& context)
      : OptimizerKernel(graph, node, context),
        options_(adam_options(node.attributes)),
        segments_(node.attributes.integers("segments")) {
    for (size_t i = 0; i < segments_.size(); i += 2)
      largest_ = std::max(largest_, segments_[i + 1] - segments_[i]);
  }

  // Both norms' block sums, then the update of one tensor.
  int64_t workspace_bytes() const override {
    return norm_blocks(largest_) * 2 * static_cast<int64_t>(sizeof(double)) +
           largest_ * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    const auto [scale, lr, t] = scalars(args);
    const LambStep decayed = lamb_step(options_, t, scale);
    const LambStep plain = lamb_step(without_decay(options_), t, scale);
    float* p = bring(args, 0, 0);
    float* m = bring(args, 2, 1);
    float* v = bring(args, 3, 2);
    for (size_t i = 0; i < segments_.size(); i += 2) {
      const int64_t at = segments_[i];
      update(p + at, m + at, v + at, gradient(args) + at, segments_[i + 1] - at, decays(at) ? decayed : plain,
             lr, args.workspace);
    }
  }

 private:
  void update(float* p, float* m, float* v, const float* g, int64_t n, const LambStep& step, double lr,
              void* workspace) {
    const int64_t blocks = norm_blocks(n);
    auto* p_squares = static_cast<double*>(workspace);
    double* u_squares = p_squares + blocks;
    auto* u = reinterpret_cast<float*>(u_squares + blocks);
    for_rows(context_, blocks, kBlocksPerTask, [&](int64_t begin, int64_t end) {
      context_.simd.lamb.moments(p, m, v, g, u, n, begin, end, step, p_squares, u_squares);
    });
    double p_sum = 0;
    double u_sum = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      p_sum += p_squares[block];
      u_sum += u_squares[block];
    }
    const float lr_trust = lamb_lr_trust(lr, p_sum, u_sum);
    for_rows(context_, n, kFlatTask, [&](int64_t begin, int64_t end) {
      context_.simd.lamb.apply(p, u, nullptr, begin, end, lr_trust);
    });
  }

  AdamOptions options_;
  std::vector<int64_t> segments_;
  int64_t largest_ = 0;
};

}  // namespace

KernelDef lamb_kernel() { return {"lamb", "cpu.lamb", refuse_unless_f32, make_kernel<Lamb>}; }

}  // namespace lockstep::cpu
