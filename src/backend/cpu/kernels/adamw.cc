// adamw: one pass over parameter, gradient and both moments.
#include "backend/cpu/flat_ranges.h"
#include "backend/cpu/optimizer_steps.h"
#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

class Adamw : public Kernel {
 public:
  Adamw(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        count_(graph.type(node.inputs[0]).shape.numel()),
        no_decay_(node.attributes.integers("no_decay")) {
    options_.beta1 = node.attributes.number("beta1");
    options_.beta2 = node.attributes.number("beta2");
    options_.eps = node.attributes.number("epsilon");
    weight_decay_ = node.attributes.number("weight_decay");
  }

  void run(const KernelArgs& args) override {
    AdamOptions options = options_;
    options.lr = *static_cast<const float*>(args.inputs[5]);
    const float scale = *static_cast<const float*>(args.inputs[4]);
    const int64_t t = *static_cast<const int64_t*>(args.inputs[6]);
    const AdamStep plain = adam_step(options, t, scale);
    options.weight_decay = weight_decay_;
    const AdamStep decayed = adam_step(options, t, scale);
    float* p = bring(args, 0, 0);
    float* m = bring(args, 2, 1);
    float* v = bring(args, 3, 2);
    const auto* g = static_cast<const float*>(args.inputs[1]);
    for_flat_ranges(context_, count_, no_decay_, [&](int64_t begin, int64_t end, bool decays) {
      context_.simd.optimizer.adamw(p, m, v, g, nullptr, begin, end, decays ? decayed : plain);
    });
  }

 private:
  // The buffer that is updated: the result's, holding the operand's values.
  float* bring(const KernelArgs& args, size_t input, size_t output) {
    auto* to = static_cast<float*>(args.outputs[output]);
    const auto* from = static_cast<const float*>(args.inputs[input]);
    if (to != from)
      for_rows(context_, count_, kFlatTask, [&](int64_t begin, int64_t end) { std::copy(from + begin, from + end, to + begin); });
    return to;
  }

  CpuContext context_;
  int64_t count_;
  std::vector<int64_t> no_decay_;
  AdamOptions options_;
  double weight_decay_ = 0;
};

}  // namespace

KernelDef adamw_kernel() { return {"adamw", "cpu.adamw", refuse_unless_f32, make_kernel<Adamw>}; }

}  // namespace lockstep::cpu
