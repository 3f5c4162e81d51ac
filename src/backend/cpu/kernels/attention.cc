// attention, attention_qkv and their gradients, on the blocked loops of simd/attention_loops.h.
//
// A packed qkv is read and its gradient written in place, by strides. 16-bit operands are converted whole, in
// the workspace; logsumexp is always f32.
#include "backend/cpu/float_staging.h"
#include "backend/cpu/simd/simd.h"
#include "ops/attention_rule.h"
#include "ops/dropout_stream.h"

namespace lockstep::cpu {
namespace {

// Where q, k or v begins: a tensor (index of an operand or result of the node) and an offset in it.
struct Part {
  int tensor;
  int64_t offset;
  HeadStrides strides;
};

struct Parts {
  Part q, k, v;
};

HeadStrides dense(int64_t rows, int64_t heads, int64_t dim) { return {heads * dim, dim, rows * heads * dim}; }

Parts separate_parts(const AttentionRule& r, int first) {
  const HeadStrides keys = dense(r.keys, r.kv_heads, r.head_dim);
  return {{first, 0, dense(r.queries, r.heads, r.head_dim)}, {first + 1, 0, keys}, {first + 2, 0, keys}};
}

Parts packed_parts(const AttentionRule& r, int tensor) {
  const int64_t row = (r.heads + 2 * r.kv_heads) * r.head_dim;
  const HeadStrides strides{row, r.head_dim, r.queries * row};
  return {{tensor, 0, strides},
          {tensor, r.heads * r.head_dim, strides},
          {tensor, (r.heads + r.kv_heads) * r.head_dim, strides}};
}

AttentionShape shape_of(const AttentionRule& r) {
  AttentionShape shape{
      r.batch,  r.queries, r.keys, r.heads, r.kv_heads, r.head_dim, static_cast<float>(r.scale),
      r.causal, r.window};
  shape.cap = static_cast<float>(r.cap);
  shape.drops = r.dropout > 0;
  return shape;
}

// Operands or results by index, as f32; null where they are integers.
class Tensors {
 public:
  Tensors(const Graph& graph, const std::vector<Value>& values, FloatStaging& staging)
      : data_(values.size(), nullptr) {
    for (const Value value : values)
      slots_.push_back(is_floating(graph.type(value).dtype) ? staging.add(graph.type(value)) : -1);
  }
  void read(const FloatStaging& staging, const KernelArgs& args) {
    for (size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i] >= 0)
        data_[i] = const_cast<float*>(staging.read(slots_[i], args.inputs[i], args.workspace));
  }
  void aim(const FloatStaging& staging, const KernelArgs& args) {
    for (size_t i = 0; i < slots_.size(); ++i)
      data_[i] = staging.target(slots_[i], args.outputs[i], args.workspace);
  }
  void write(const FloatStaging& staging, const KernelArgs& args) const {
    for (size_t i = 0; i < slots_.size(); ++i) staging.write(slots_[i], args.outputs[i], args.workspace);
  }
  float* operator[](size_t index) const { return data_[index]; }
  float* at(const Part& part) const { return data_[static_cast<size_t>(part.tensor)] + part.offset; }

 private:
  std::vector<int> slots_;
  std::vector<float*> data_;
};

// What forward and backward share: staged operands, masks, one scratch per thread.
class AttentionBase : public Kernel {
 public:
  AttentionBase(const Graph& graph, const Node& node, const CpuContext& context, const AttentionRule& rule)
      : context_(context),
        rule_(rule),
        staging_(context),
        inputs_(graph, node.inputs, staging_),
        outputs_(graph, node.outputs, staging_) {}

  int64_t workspace_bytes() const override {
    return staging_.bytes() + context_.pool.threads() * scratch_floats_ * static_cast<int64_t>(sizeof(float));
  }

 protected:
  AttentionShape shape_with_masks(const KernelArgs& args) const {
    AttentionShape shape = shape_of(rule_);
    if (rule_.keys_visible >= 0)
      shape.key_visible = static_cast<const uint8_t*>(args.inputs[static_cast<size_t>(rule_.keys_visible)]);
    if (rule_.documents >= 0)
      shape.documents = static_cast<const int32_t*>(args.inputs[static_cast<size_t>(rule_.documents)]);
    if (rule_.rng >= 0) {
      const auto* rng = static_cast<const int64_t*>(args.inputs[static_cast<size_t>(rule_.rng)]);
      shape.dropout = {static_cast<uint64_t>(rng[0]), dropout_stream(rule_.key, rng[1]), 0,
                       Philox::bernoulli_threshold(rule_.dropout), dropout_scale(rule_.dropout)};
    }
    return shape;
  }
  template <typename Args>
  void run_units(int64_t units, void (*loop)(const Args&, int64_t, int64_t, float*), const Args& args,
                 void* workspace) const {
    auto* scratch = reinterpret_cast<float*>(static_cast<char*>(workspace) + staging_.bytes());
    context_.pool.run_indexed(units, [&](int64_t unit, int thread) {
      loop(args, unit, unit + 1, scratch + thread * scratch_floats_);
    });
  }

  CpuContext context_;
  AttentionRule rule_;
  FloatStaging staging_;
  Tensors inputs_;
  Tensors outputs_;
  int64_t scratch_floats_ = 0;
};

class AttentionForwardKernel : public AttentionBase {
 public:
  AttentionForwardKernel(const Graph& graph, const Node& node, const CpuContext& context,
                         const AttentionRule& rule, const Parts& qkv)
      : AttentionBase(graph, node, context, rule), qkv_(qkv) {
    scratch_floats_ = static_cast<int64_t>(context.simd.attention.forward_scratch_floats(shape_of(rule)));
  }

  void run(const KernelArgs& args) override {
    inputs_.read(staging_, args);
    outputs_.aim(staging_, args);
    AttentionForward call{};
    call.shape = shape_with_masks(args);
    call.q = inputs_.at(qkv_.q);
    call.k = inputs_.at(qkv_.k);
    call.v = inputs_.at(qkv_.v);
    call.out = outputs_[0];
    call.logsumexp = outputs_[1];
    call.q_strides = qkv_.q.strides;
    call.k_strides = qkv_.k.strides;
    call.v_strides = qkv_.v.strides;
    call.out_strides = dense(rule_.queries, rule_.heads, rule_.head_dim);
    const AttentionLoops& loops = context_.simd.attention;
    run_units(loops.forward_units(call.shape), loops.forward, call, args.workspace);
    outputs_.write(staging_, args);
  }

 private:
  Parts qkv_;
};

// Operands: dout, then qkv in one tensor or three, out, logsumexp.
class AttentionBackwardKernel : public AttentionBase {
 public:
  AttentionBackwardKernel(const Graph& graph, const Node& node, const CpuContext& context,
                          const AttentionRule& rule, const Parts& qkv, const Parts& dqkv, int out)
      : AttentionBase(graph, node, context, rule), qkv_(qkv), dqkv_(dqkv), out_(static_cast<size_t>(out)) {
    scratch_floats_ = static_cast<int64_t>(context.simd.attention.backward_scratch_floats(shape_of(rule)));
  }

  void run(const KernelArgs& args) override {
    inputs_.read(staging_, args);
    outputs_.aim(staging_, args);
    AttentionBackward call{};
    call.shape = shape_with_masks(args);
    call.q = inputs_.at(qkv_.q);
    call.k = inputs_.at(qkv_.k);
    call.v = inputs_.at(qkv_.v);
    call.out = inputs_[out_];
    call.logsumexp = inputs_[out_ + 1];
    call.dout = inputs_[0];
    call.dq = outputs_.at(dqkv_.q);
    call.dk = outputs_.at(dqkv_.k);
    call.dv = outputs_.at(dqkv_.v);
    call.q_strides = qkv_.q.strides;
    call.k_strides = qkv_.k.strides;
    call.v_strides = qkv_.v.strides;
    call.dq_strides = dqkv_.q.strides;
    call.dk_strides = dqkv_.k.strides;
    call.dv_strides = dqkv_.v.strides;
    call.out_strides = call.dout_strides = dense(rule_.queries, rule_.heads, rule_.head_dim);
    const AttentionLoops& loops = context_.simd.attention;
    run_units(loops.backward_units(call.shape), loops.backward, call, args.workspace);
    outputs_.write(staging_, args);
  }

 private:
  Parts qkv_;
  Parts dqkv_;
  size_t out_;
};

const Shape& operand_shape(const Graph& graph, const Node& node, size_t operand) {
  return graph.type(node.inputs[operand]).shape;
}

std::unique_ptr<Kernel> make_attention(const Graph& graph, const Node& node, const CpuContext& context) {
  const AttentionRule rule =
      attention_rule(operand_shape(graph, node, 0), operand_shape(graph, node, 1), node.attributes, 3);
  return std::make_unique<AttentionForwardKernel>(graph, node, context, rule, separate_parts(rule, 0));
}

std::unique_ptr<Kernel> make_attention_qkv(const Graph& graph, const Node& node, const CpuContext& context) {
  const AttentionRule rule = packed_attention_rule(operand_shape(graph, node, 0), node.attributes, 1);
  return std::make_unique<AttentionForwardKernel>(graph, node, context, rule, packed_parts(rule, 0));
}

std::unique_ptr<Kernel> make_attention_grad(const Graph& graph, const Node& node, const CpuContext& context) {
  const AttentionRule rule =
      attention_rule(operand_shape(graph, node, 1), operand_shape(graph, node, 2), node.attributes, 6);
  return std::make_unique<AttentionBackwardKernel>(graph, node, context, rule, separate_parts(rule, 1),
                                                   separate_parts(rule, 0), 4);
}

std::unique_ptr<Kernel> make_attention_qkv_grad(const Graph& graph, const Node& node,
                                                const CpuContext& context) {
  const AttentionRule rule = packed_attention_rule(operand_shape(graph, node, 1), node.attributes, 4);
  return std::make_unique<AttentionBackwardKernel>(graph, node, context, rule, packed_parts(rule, 1),
                                                   packed_parts(rule, 0), 2);
}

}  // namespace

KernelDef attention_kernel() { return {"attention", "cpu.attention", refuse_nothing, make_attention}; }
KernelDef attention_grad_kernel() {
  return {"attention_grad", "cpu.attention_grad", refuse_nothing, make_attention_grad};
}
KernelDef attention_qkv_kernel() {
  return {"attention_qkv", "cpu.attention_qkv", refuse_nothing, make_attention_qkv};
}
KernelDef attention_qkv_grad_kernel() {
  return {"attention_qkv_grad", "cpu.attention_qkv_grad", refuse_nothing, make_attention_qkv_grad};
}

}  // namespace lockstep::cpu
