// attention of one query per head over a cache with a mask of slots: what a model that writes text does for
// every token. The blocks of the other kernel are made for many queries.
#include "backend/cpu/kernel_def.h"
#include "backend/cpu/simd/simd.h"
#include "ops/attention_rule.h"

namespace lockstep::cpu {
namespace {

AttentionRule rule_of(const Graph& graph, const Node& node) {
  return attention_rule(graph.type(node.inputs[0]).shape, graph.type(node.inputs[1]).shape, node.attributes,
                        3);
}

std::string refuse(const Graph& graph, const Node& node) {
  const AttentionRule rule = rule_of(graph, node);
  if (rule.queries != 1 || rule.keys == 1) return "there are several queries, or one key";
  if (rule.keys_visible < 0) return "no mask says which keys are seen";
  if (rule.documents >= 0 || rule.dropout > 0 || rule.window > 0)
    return "documents, dropout and windows are not in its loops";
  const DType dtype = graph.type(node.inputs[0]).dtype;
  if (dtype != DType::kF32 && dtype != DType::kBF16) return "operands are neither f32 nor bf16";
  return "";
}

class CachedAttentionKernel : public Kernel {
 public:
  CachedAttentionKernel(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), rule_(rule_of(graph, node)), dtype_(graph.type(node.inputs[0]).dtype) {
    call_.slots = rule_.keys;
    call_.heads = rule_.heads;
    call_.kv_heads = rule_.kv_heads;
    call_.head_dim = rule_.head_dim;
    call_.scale = static_cast<float>(rule_.scale);
    call_.cap = static_cast<float>(rule_.cap);
    // A whole number of cache lines.
    scratch_floats_ = ceil_div(context.simd.cached_attention.scratch_floats(call_), 16) * 16;
  }

  int64_t workspace_bytes() const override {
    return context_.pool.threads() * scratch_floats_ * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    const CachedAttentionLoops& loops = context_.simd.cached_attention;
    const int64_t size = size_of(dtype_), queries = rule_.heads * rule_.head_dim * size;
    const int64_t keys = rule_.keys * rule_.kv_heads * rule_.head_dim * size;
    context_.pool.run_indexed(rule_.batch * rule_.kv_heads, [&](int64_t unit, int thread) {
      const int64_t b = unit / rule_.kv_heads;
      CachedAttention call = call_;
      call.q = static_cast<const std::byte*>(args.inputs[0]) + b * queries;
      call.k = static_cast<const std::byte*>(args.inputs[1]) + b * keys;
      call.v = static_cast<const std::byte*>(args.inputs[2]) + b * keys;
      call.visible =
          static_cast<const uint8_t*>(args.inputs[static_cast<size_t>(rule_.keys_visible)]) + b * rule_.keys;
      call.out = static_cast<std::byte*>(args.outputs[0]) + b * queries;
      call.logsumexp = static_cast<float*>(args.outputs[1]) + b * rule_.heads;
      (dtype_ == DType::kF32 ? loops.f32 : loops.bf16)(
          call, unit % rule_.kv_heads, static_cast<float*>(args.workspace) + thread * scratch_floats_);
    });
  }

 private:
  CpuContext context_;
  AttentionRule rule_;
  DType dtype_;
  CachedAttention call_ = {};
  int64_t scratch_floats_ = 0;
};

}  // namespace

KernelDef cached_attention_kernel() {
  return {"attention", "cpu.cached_attention", refuse, make_kernel<CachedAttentionKernel>};
}

}  // namespace lockstep::cpu
