// bf16 on processors (or for shapes) without bf16 arithmetic: operands are widened into the workspace, the
// op's f32 kernel runs there, and bf16 results are rounded once.
#include <vector>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/simd/simd.h"
#include "base/error.h"

namespace lockstep::cpu {
namespace {

std::string refuse(const Graph& graph, const Node& node) {
  return graph.type(node.inputs[0]).dtype == DType::kBF16 ? "" : "operands are not bf16";
}

std::unique_ptr<Kernel> f32_kernel(const Graph& graph, const Node& node, const CpuContext& context) {
  for (const KernelDef& def : all_kernels())
    if (def.op == node.op->name && def.refuse(graph, node).empty()) return def.make(graph, node, context);
  throw InternalError("no f32 kernel for {}", node.op->name);
}

class Bf16ViaF32 : public Kernel {
 public:
  Bf16ViaF32(const Graph& graph, const Node& node, const CpuContext& context) : context_(context) {
    Graph wide(graph.ops(), "wide");
    std::vector<Value> inputs;
    for (const Value value : node.inputs) {
      const Type& type = graph.type(value);
      const DType dtype = type.dtype == DType::kBF16 ? DType::kF32 : type.dtype;
      inputs.push_back(wide.add_input(graph.name(value), {dtype, type.shape}));
      inputs_.push_back(make_operand(type));
    }
    wide.emit_all(*node.op, inputs, node.attributes);
    for (const Value value : node.outputs) outputs_.push_back(make_operand(graph.type(value)));
    inner_ = f32_kernel(wide, wide.nodes().back(), context);
  }

  int64_t workspace_bytes() const override { return widened_bytes_ + inner_->workspace_bytes(); }

  void run(const KernelArgs& args) override {
    auto* workspace = static_cast<std::byte*>(args.workspace);
    const auto address = [&](const Operand& operand, void* given) {
      return operand.widened ? workspace + operand.offset : given;
    };
    std::vector<void*> inputs;
    std::vector<void*> outputs;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      inputs.push_back(address(inputs_[i], args.inputs[i]));
      if (inputs_[i].widened)
        for_rows(context_, inputs_[i].numel, kTaskElements, [&](int64_t begin, int64_t end) {
          context_.simd.pointwise.from_bf16(static_cast<float*>(inputs[i]) + begin,
                                            static_cast<const uint16_t*>(args.inputs[i]) + begin,
                                            end - begin);
        });
    }
    for (size_t i = 0; i < outputs_.size(); ++i) outputs.push_back(address(outputs_[i], args.outputs[i]));
    inner_->run({inputs, outputs, workspace + widened_bytes_});
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].widened)
        for_rows(context_, outputs_[i].numel, kTaskElements, [&](int64_t begin, int64_t end) {
          context_.simd.pointwise.to_bf16(static_cast<uint16_t*>(args.outputs[i]) + begin,
                                          static_cast<const float*>(outputs[i]) + begin, end - begin);
        });
  }

 private:
  struct Operand {
    bool widened;
    int64_t numel;
    int64_t offset;  // in the workspace, when widened
  };
  Operand make_operand(const Type& type) {
    const Operand operand{type.dtype == DType::kBF16, type.shape.numel(), widened_bytes_};
    if (operand.widened) widened_bytes_ += ceil_div(4 * operand.numel, 64) * 64;
    return operand;
  }

  CpuContext context_;
  std::vector<Operand> inputs_, outputs_;
  int64_t widened_bytes_ = 0;
  std::unique_ptr<Kernel> inner_;
};

}  // namespace

#define VIA_F32(op)                                                            \
  KernelDef op##_bf16_via_f32_kernel() {                                       \
    return {#op, "cpu." #op "_bf16_via_f32", refuse, make_kernel<Bf16ViaF32>}; \
  }
VIA_F32(matmul)
VIA_F32(conv2d)
VIA_F32(conv2d_grad_input)
VIA_F32(conv2d_grad_filter)
VIA_F32(max_pool2d)
VIA_F32(max_pool2d_grad)
VIA_F32(avg_pool2d)
VIA_F32(avg_pool2d_grad)
VIA_F32(batch_norm)
VIA_F32(batch_norm_grad)
VIA_F32(group_norm)
VIA_F32(group_norm_grad)
#undef VIA_F32

}  // namespace lockstep::cpu
