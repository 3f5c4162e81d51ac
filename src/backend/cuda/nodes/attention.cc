// attention and attention_qkv, and their gradients: through cuDNN where it serves the shape, else by our
// kernels.
#include "backend/cuda/kernels/attention.h"

#include "backend/cuda/kernel_def.h"
#include "base/error.h"
#include "ops/attention_rule.h"
#ifdef LOCKSTEP_CUDNN_FRONTEND
#include "backend/cuda/cudnn/sdpa_plan.h"
#include "backend/cuda/nodes/kept_plans.h"
#endif

namespace lockstep::cuda {
namespace {

// Which operands and results an attention node has, packed or apart, forward or backward.
struct Operands {
  AttentionRule rule;
  bool packed = false;
  bool gradient = false;
  DType dtype = DType::kF32;
  size_t qkv = 0;  // the first of q, k, v, or the packed tensor
  size_t out = 0;  // gradient: out, then the logsumexp

  AttentionShape shape() const;
  // Elements from the start of a packed tensor to q, k and v.
  int64_t offset(int part) const {
    if (!packed) return 0;
    return (part == 0 ? 0 : part == 1 ? rule.heads : rule.heads + rule.kv_heads) * rule.head_dim;
  }
  template <typename Addresses>
  void* part(const Addresses& addresses, size_t first, int part) const {
    const size_t tensor = packed ? first : first + static_cast<size_t>(part);
    return static_cast<char*>(addresses[tensor]) + offset(part) * size_of(dtype);
  }
};

AttentionShape Operands::shape() const {
  const auto dense = [&](int64_t rows, int64_t heads) {
    return HeadLayout{rows * heads * rule.head_dim, heads * rule.head_dim, rule.head_dim};
  };
  AttentionShape s;
  s.batch = rule.batch;
  s.queries = rule.queries;
  s.keys = rule.keys;
  s.heads = rule.heads;
  s.kv_heads = rule.kv_heads;
  s.head_dim = rule.head_dim;
  s.causal = rule.causal;
  s.window = rule.window;
  s.scale = static_cast<float>(rule.scale);
  s.dtype = dtype;
  s.out = dense(rule.queries, rule.heads);
  s.q = s.out;
  s.k = s.v = dense(rule.keys, rule.kv_heads);
  if (packed) s.q = s.k = s.v = dense(rule.queries, rule.heads + 2 * rule.kv_heads);
  return s;
}

Operands operands_of(const Graph& graph, const Node& node) {
  Operands o;
  o.packed = node.op->name.starts_with("attention_qkv");
  o.gradient = node.op->name.ends_with("_grad");
  o.qkv = o.gradient ? 1 : 0;
  o.out = o.packed ? 2 : 4;
  const Type& first = in_type(graph, node, o.qkv);
  o.dtype = first.dtype;
  const int masks = o.gradient ? (o.packed ? 4 : 6) : (o.packed ? 1 : 3);
  o.rule = o.packed
               ? packed_attention_rule(first.shape, node.attributes, masks)
               : attention_rule(first.shape, in_type(graph, node, o.qkv + 1).shape, node.attributes, masks);
  return o;
}

class Attention : public NodeKernel {
 public:
  Attention(const Graph& graph, const Node& node, Device&) : operands_(operands_of(graph, node)) {}

  int64_t workspace_bytes() const override {
    return operands_.gradient ? attention_grad_workspace(operands_.shape()) : 0;
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    const Operands& o = operands_;
    AttentionShape shape = o.shape();
    if (o.rule.batch * o.rule.queries * o.rule.keys == 0) return;
    if (o.rule.keys_visible >= 0)
      shape.keys_visible = in<uint8_t>(args, static_cast<size_t>(o.rule.keys_visible));
    if (o.rule.documents >= 0) shape.documents = in<int32_t>(args, static_cast<size_t>(o.rule.documents));
    const auto from = [&](int part) { return o.part(args.inputs, o.qkv, part); };
    const auto to = [&](int part) { return o.part(args.outputs, 0, part); };
    if (o.gradient)
      attention_grad(stream, shape, args.inputs[0], from(0), from(1), from(2), args.inputs[o.out],
                     in(args, o.out + 1), to(0), to(1), to(2), args.workspace);
    else
      attention(stream, shape, from(0), from(1), from(2), args.outputs[0], out(args, 1));
  }

 private:
  Operands operands_;
};

// What all scores of a node may take where products are made of it.
constexpr int64_t kMostScoreBytes = int64_t{4} << 30;

std::string refuse_own(const Graph& graph, const Node& node, Device& device) {
  const Operands o = operands_of(graph, node);
  const AttentionRule& rule = o.rule;
  if (rule.cap > 0 || rule.dropout > 0) return "scores are capped or weights dropped";
  const int64_t scores = rule.batch * rule.heads * rule.queries * rule.keys * int64_t{sizeof(float)};
  if (device.tf32() && o.dtype == DType::kF32 && scores > 0 && scores <= kMostScoreBytes)
    return "products of its scores in tf32 take a third of its time";
  return "";
}

#ifdef LOCKSTEP_CUDNN_FRONTEND

std::string describe(const AttentionShape& s, bool gradient) {
  return fmt::format("sdpa {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", gradient, s.batch, s.queries,
                     s.keys, s.heads, s.kv_heads, s.head_dim, s.causal, s.window, s.scale, name_of(s.dtype),
                     s.q.row, s.q.head, s.q.batch, s.k.row, s.k.batch);
}

auto maker(const AttentionShape& s, bool gradient) {
  return [s, gradient](cudnnHandle_t handle) {
    return SdpaPlan(handle, s, gradient ? SdpaPlan::Direction::kBackward : SdpaPlan::Direction::kForward);
  };
}

KeptPlan<SdpaPlan> plan_for(Device& device, const AttentionShape& s, bool gradient) {
  return device.kept_plans().get<SdpaPlan>(device, describe(s, gradient), maker(s, gradient));
}

class CudnnAttention : public NodeKernel {
 public:
  CudnnAttention(const Graph& graph, const Node& node, Device& device)
      : operands_(operands_of(graph, node)), kept_(plan_for(device, operands_.shape(), operands_.gradient)) {}

  int64_t workspace_bytes() const override { return kept_.plan->workspace_bytes(); }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    const Operands& o = operands_;
    cudnnHandle_t handle = kept_.handle;
    set_cudnn_stream(handle, stream);
    const auto from = [&](int part) { return o.part(args.inputs, o.qkv, part); };
    const auto to = [&](int part) { return o.part(args.outputs, 0, part); };
    if (o.gradient)
      kept_.plan->backward(handle, args.inputs[0], from(0), from(1), from(2), args.inputs[o.out],
                           in(args, o.out + 1), to(0), to(1), to(2), args.workspace);
    else
      kept_.plan->forward(handle, from(0), from(1), from(2), args.outputs[0], out(args, 1), args.workspace);
  }

 private:
  Operands operands_;
  KeptPlan<SdpaPlan> kept_;
};

// What needs no plan to be known.
std::string refuse_cudnn_shape(const Operands& o, Device& device) {
  if (!device.cudnn_refusal().empty()) return device.cudnn_refusal();
  if (o.rule.keys_visible >= 0 || o.rule.documents >= 0) return "keys or documents are masked";
  if (o.rule.cap > 0 || o.rule.dropout > 0) return "scores are capped or weights dropped";
  if (o.rule.batch * o.rule.queries * o.rule.keys == 0) return "there is nothing to attend to";
  return SdpaPlan::refusal(o.shape());
}

std::string refuse_cudnn(const Graph& graph, const Node& node, Device& device) {
  const Operands o = operands_of(graph, node);
  std::string reason = refuse_cudnn_shape(o, device);
  if (!reason.empty()) return reason;
  try {
    plan_for(device, o.shape(), o.gradient);
    return "";
  } catch (const DeviceError& error) {
    return error.what();
  }
}

void prepare_cudnn(const Graph& graph, const Node& node, Device& device) {
  const Operands o = operands_of(graph, node);
  if (refuse_cudnn_shape(o, device).empty())
    device.kept_plans().start<SdpaPlan>(device, describe(o.shape(), o.gradient),
                                        maker(o.shape(), o.gradient));
}

#endif

}  // namespace

void add_attention(KernelDefs& defs) {
  for (const std::string_view op : {"attention", "attention_grad", "attention_qkv", "attention_qkv_grad"}) {
#ifdef LOCKSTEP_CUDNN_FRONTEND
    defs.push_back({op, "cuda.attention_cudnn", refuse_cudnn, make_kernel<CudnnAttention>, prepare_cudnn});
#endif
    defs.push_back({op, "cuda.attention", refuse_own, make_kernel<Attention>});
  }
}

}  // namespace lockstep::cuda
