// adam: one pass over parameter, gradient and both moments.
#include "backend/cpu/optimizer_kernel.h"

namespace lockstep::cpu {
namespace {

class Adam : public OptimizerKernel {
 public:
  Adam(const Graph& graph, const Node& node, const CpuContext& context)
      : OptimizerKernel(graph, node, context), options_(adam_options(node.attributes)) {}

  void run(const KernelArgs& args) override {
    const auto [scale, lr, t] = scalars(args);
    const AdamOptions options = with_lr(options_, lr);
    const AdamStep decayed = adam_step(options, t, scale);
    const AdamStep plain = adam_step(without_decay(options), t, scale);
    float* p = bring(args, 0, 0);
    float* m = bring(args, 2, 1);
    float* v = bring(args, 3, 2);
    const float* g = gradient(args);
    for_elements([&](int64_t begin, int64_t end, bool decays) {
      context_.simd.optimizer.adam(p, m, v, g, nullptr, begin, end, decays ? decayed : plain);
    });
  }

 private:
  AdamOptions options_;
};

}  // namespace

KernelDef adam_kernel() { return {"adam", "cpu.adam", refuse_unless_f32, make_kernel<Adam>}; }

}  // namespace lockstep::cpu
