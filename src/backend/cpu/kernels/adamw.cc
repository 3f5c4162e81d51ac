// adamw: one pass over parameter, gradient and both moments.
#include "backend/cpu/optimizer_kernel.h"

namespace lockstep::cpu {
namespace {

class Adamw : public OptimizerKernel {
 public:
  Adamw(const Graph& graph, const Node& node, const CpuContext& context)
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
      context_.simd.optimizer.adamw(p, m, v, g, nullptr, begin, end, decays ? decayed : plain);
    });
  }

 private:
  AdamOptions options_;
};

}  // namespace

KernelDef adamw_kernel() { return {"adamw", "cpu.adamw", refuse_unless_f32, make_kernel<Adamw>}; }

}  // namespace lockstep::cpu
