// iota: indices along one axis.
#include "backend/cpu/kernel_def.h"

namespace lockstep::cpu {
namespace {

class Iota : public Kernel {
 public:
  Iota(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), type_(graph.type(node.outputs[0])) {
    const int rank = type_.shape.rank();
    const auto axis = static_cast<int>((node.attributes.integer("axis") + rank) % rank);
    inner_ = type_.shape.product(axis + 1, rank);
    extent_ = type_.shape[axis];
  }

  void run(const KernelArgs& args) override {
    for_rows(context_, type_.shape.numel(), kTaskElements, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        write_element(type_.dtype, args.outputs[0], i, static_cast<double>(i / inner_ % extent_));
    });
  }

 private:
  CpuContext context_;
  Type type_;
  int64_t inner_ = 1;
  int64_t extent_ = 1;
};

}  // namespace

KernelDef iota_kernel() { return {"iota", "cpu.iota", refuse_nothing, make_kernel<Iota>}; }

}  // namespace lockstep::cpu
