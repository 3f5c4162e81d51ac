// round_stochastic: the random bits are drawn in the loop that adds them.
#include "backend/cpu/kernel_def.h"
#include "backend/cpu/simd/simd.h"
#include "ops/stochastic_rounding.h"

namespace lockstep::cpu {
namespace {

static_assert(kTaskElements % 4 == 0, "tasks begin with a whole block of draws");

class RoundStochastic : public Kernel {
 public:
  RoundStochastic(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        numel_(graph.type(node.inputs[0]).shape.numel()),
        key_(node.attributes.integer("key")),
        first_(node.attributes.integer("first")) {}

  void run(const KernelArgs& args) override {
    const auto* rng = static_cast<const int64_t*>(args.inputs[1]);
    const auto seed = static_cast<uint64_t>(rng[0]);
    const uint64_t stream = rounding_stream(key_, rng[1]);
    for_rows(context_, numel_, kTaskElements, [&](int64_t begin, int64_t end) {
      context_.simd.rounding.round_stochastic(static_cast<const float*>(args.inputs[0]),
                                              static_cast<uint16_t*>(args.outputs[0]), begin, end, first_,
                                              seed, stream);
    });
  }

 private:
  CpuContext context_;
  int64_t numel_;
  int64_t key_, first_;
};

}  // namespace

KernelDef round_stochastic_kernel() {
  return {"round_stochastic", "cpu.round_stochastic", refuse_nothing, make_kernel<RoundStochastic>};
}

}  // namespace lockstep::cpu
