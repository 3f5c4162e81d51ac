// constant: fills a tensor with one number.
#include "backend/cpu/kernel_def.h"

namespace lockstep::cpu {
namespace {

class Constant : public Kernel {
 public:
  Constant(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), type_(graph.type(node.outputs[0])), value_(node.attributes.number("value")) {}

  void run(const KernelArgs& args) override {
    for_rows(context_, type_.shape.numel(), kTaskElements, [&](int64_t begin, int64_t end) {
      if (type_.dtype == DType::kF32) {
        for (int64_t i = begin; i < end; ++i)
          static_cast<float*>(args.outputs[0])[i] = static_cast<float>(value_);
      } else {
        for (int64_t i = begin; i < end; ++i) write_element(type_.dtype, args.outputs[0], i, value_);
      }
    });
  }

 private:
  CpuContext context_;
  Type type_;
  double value_;
};

}  // namespace

KernelDef constant_kernel() { return {"constant", "cpu.constant", refuse_nothing, make_kernel<Constant>}; }

}  // namespace lockstep::cpu
