// lion: one pass over parameter, gradient and momentum.
#include "backend/cpu/optimizer_kernel.h"

namespace lockstep::cpu {
namespace {

class Lion : public OptimizerKernel {
 public:
  Lion(const Graph& graph, const Node& node, const CpuContext& context)
      : OptimizerKernel(graph, node, context), options_(adam_options(node.attributes)) {}

  void run(const KernelArgs& args) override {
    const Scalars now = scalars(args);
    const AdamOptions options = with_lr(options_, now.lr);
    const LionStep decayed = lion_step(options, now.scale);
    const LionStep plain = lion_step(without_decay(options), now.scale);
    float* p = bring(args, 0, 0);
    float* m = bring(args, 2, 1);
    const float* g = gradient(args);
    for_elements([&](int64_t begin, int64_t end, bool decays) {
      context_.simd.optimizer.lion(p, m, g, nullptr, begin, end, decays ? decayed : plain);
    });
  }

 private:
  AdamOptions options_;
};

}  // namespace

KernelDef lion_kernel() { return {"lion", "cpu.lion", refuse_unless_f32, make_kernel<Lion>}; }

}  // namespace lockstep::cpu
