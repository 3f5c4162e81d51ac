// sgd: one pass over parameter, gradient and the momentum, where there is one.
#include "backend/cpu/optimizer_kernel.h"

namespace lockstep::cpu {
namespace {

class Sgd : public OptimizerKernel {
 public:
  Sgd(const Graph& graph, const Node& node, const CpuContext& context)
      : OptimizerKernel(graph, node, context),
        has_momentum_(node.outputs.size() == 2),
        step_{.grad_scale = 0.0f,
              .lr = 0.0f,
              .momentum = static_cast<float>(node.attributes.number("momentum")),
              .weight_decay = static_cast<float>(node.attributes.number("weight_decay")),
              .nesterov = node.attributes.flag("nesterov")} {}

  void run(const KernelArgs& args) override {
    const Scalars now = scalars(args);
    SgdStep decayed = step_;
    decayed.grad_scale = now.scale;
    decayed.lr = now.lr;
    SgdStep plain = decayed;
    plain.weight_decay = 0.0f;
    float* p = bring(args, 0, 0);
    float* buf = has_momentum_ ? bring(args, 2, 1) : nullptr;
    const float* g = gradient(args);
    for_elements([&](int64_t begin, int64_t end, bool decays) {
      context_.simd.optimizer.sgd(p, buf, g, nullptr, begin, end, decays ? decayed : plain);
    });
  }

 private:
  bool has_momentum_;
  SgdStep step_;
};

}  // namespace

KernelDef sgd_kernel() { return {"sgd", "cpu.sgd", refuse_unless_f32, make_kernel<Sgd>}; }

}  // namespace lockstep::cpu
