// attention_qkv(qkv[, keys_visible][, documents][, rng]) {heads, kv_heads, causal, window, scale, mask, cap,
// dropout, key} -> out, logsumexp.
//
// Attention over the packed result of one projection: each row of qkv [B, T, (H + 2 Hkv) D] holds the query
// heads, then the key heads, then the value heads. out is [B, T, H D], ready for the projection after it. The
// same numbers as slicing, reshaping and calling attention, without the copies.
//
// attention_qkv_grad(dout, qkv, out, logsumexp[, keys_visible][, documents][, rng]) -> dqkv.
#include "base/error.h"
#include "ops/attention_rule.h"
#include "ops/builder.h"

namespace lockstep {
namespace {

constexpr int kForwardMasks = 1;
constexpr int kGradMasks = 4;

std::vector<AttributeDef> attributes() {
  std::vector<AttributeDef> result = attention_attributes();
  result.push_back({"heads", int64_t{0}, "query heads H", true});
  result.push_back({"kv_heads", int64_t{0}, "key heads, a divisor of heads; 0 means as many as heads"});
  return result;
}

// What attention itself takes.
Attributes without_heads(const Attributes& attributes) {
  Attributes result;
  for (const auto& [name, value] : attributes.entries())
    if (name != "heads" && name != "kv_heads") result.set(name, value);
  return result;
}

Type out_type(const AttentionRule& rule, DType dtype) {
  return {dtype, {rule.batch, rule.queries, rule.heads * rule.head_dim}};
}

Type logsumexp_type(const AttentionRule& rule) {
  return {DType::kF32, {rule.batch, rule.heads, rule.queries}};
}

std::vector<Type> infer(const InferContext& c) {
  check_packed_qkv(c, 0);
  const AttentionRule rule = packed_attention_rule(c.shape(0), c.attributes(), kForwardMasks);
  check_masks(c, rule, kForwardMasks);
  return {out_type(rule, c.type(0).dtype), logsumexp_type(rule)};
}

std::vector<Type> infer_grad(const InferContext& c) {
  check_packed_qkv(c, 1);
  const AttentionRule rule = packed_attention_rule(c.shape(1), c.attributes(), kGradMasks);
  check_masks(c, rule, kGradMasks);
  const Type out = out_type(rule, c.type(1).dtype);
  for (const int operand : {0, 2})
    if (c.type(operand) != out)
      c.fail("operand {} must be {}, the type of attention_qkv's result", operand, to_string(out));
  if (c.type(3) != logsumexp_type(rule))
    c.fail("logsumexp (operand 3) must be {}", to_string(logsumexp_type(rule)));
  return {c.type(1)};
}

std::vector<Value> gradient(GradientContext& c) {
  if (c.grad(1).valid())
    throw UserError(
        "attention_qkv: {} (the logsumexp) has no gradient; it is an output for attention_qkv_grad alone",
        c.graph.name(c.out(1)));
  std::vector<Value> inputs{c.grad(), c.in(0), c.out(0), c.out(1)};
  inputs.insert(inputs.end(), c.node.inputs.begin() + kForwardMasks, c.node.inputs.end());
  std::vector<Value> grads = c.graph.emit_all("attention_qkv_grad", inputs, c.attributes());
  grads.resize(c.node.inputs.size());
  return grads;
}

// q, k and v as tensors of their own.
std::vector<Value> unpack(Builder& b, Value qkv, const AttentionRule& rule) {
  const int64_t width = rule.heads * rule.head_dim;
  const int64_t kv_width = rule.kv_heads * rule.head_dim;
  const Shape queries{rule.batch, rule.queries, rule.heads, rule.head_dim};
  const Shape keys{rule.batch, rule.keys, rule.kv_heads, rule.head_dim};
  return {b.reshape(b.slice(qkv, 2, 0, width), queries),
          b.reshape(b.slice(qkv, 2, width, width + kv_width), keys),
          b.reshape(b.slice(qkv, 2, width + kv_width, width + 2 * kv_width), keys)};
}

std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const AttentionRule rule = packed_attention_rule(b.shape(inputs[0]), node.attributes, kForwardMasks);
  std::vector<Value> operands = unpack(b, inputs[0], rule);
  operands.insert(operands.end(), inputs.begin() + kForwardMasks, inputs.end());
  const std::vector<Value> results = graph.emit_all("attention", operands, without_heads(node.attributes));
  return {b.reshape(results[0], out_type(rule, b.type(inputs[0]).dtype).shape), results[1]};
}

std::vector<Value> decompose_grad(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const AttentionRule rule = packed_attention_rule(b.shape(inputs[1]), node.attributes, kGradMasks);
  const Shape queries{rule.batch, rule.queries, rule.heads, rule.head_dim};
  const std::vector<Value> qkv = unpack(b, inputs[1], rule);
  std::vector<Value> operands{b.reshape(inputs[0], queries), qkv[0],   qkv[1], qkv[2],
                              b.reshape(inputs[2], queries), inputs[3]};
  operands.insert(operands.end(), inputs.begin() + kGradMasks, inputs.end());
  std::vector<Value> grads = graph.emit_all("attention_grad", operands, without_heads(node.attributes));
  for (Value& grad : grads) {
    const Shape shape = b.shape(grad);
    grad = b.reshape(grad, {shape[0], shape[1], shape[2] * shape[3]});
  }
  return {b.concat({grads[0], grads[1], grads[2]}, 2)};
}

// By sequences only: a slice of the packed axis does not hold whole heads of q, k and v alike.
std::vector<ShardingSignature> sharding(const Graph&, const Node& node) {
  std::vector<ShardingSignature> result;
  for (const Placement placement : {Placement::replicate(), Placement::split(0)}) {
    if (node.attributes.number("dropout") > 0 && placement != Placement::replicate()) continue;
    result.push_back({std::vector<Placement>(node.inputs.size(), placement),
                      std::vector<Placement>(node.outputs.size(), placement)});
  }
  return result;
}

}  // namespace

OpDef attention_qkv_op() {
  OpDef def{.name = "attention_qkv", .summary = "attention over a packed qkv, without copies"};
  def.attributes = attributes();
  def.min_inputs = kForwardMasks;
  def.max_inputs = kForwardMasks + 3;
  def.infer = infer;
  def.gradient = gradient;
  def.decompose = decompose;
  def.sharding = sharding;
  def.cost = [](const Graph& graph, const Node& node) {
    const AttentionRule rule =
        packed_attention_rule(graph.type(node.inputs[0]).shape, node.attributes, kForwardMasks);
    return attention_cost(graph, node, rule, 4.0 * static_cast<double>(rule.head_dim));
  };
  return def;
}

OpDef attention_qkv_grad_op() {
  OpDef def{.name = "attention_qkv_grad", .summary = "gradient of attention_qkv, packed alike"};
  def.attributes = attributes();
  def.min_inputs = kGradMasks;
  def.max_inputs = kGradMasks + 3;
  def.infer = infer_grad;
  def.decompose = decompose_grad;
  def.sharding = sharding;
  def.cost = [](const Graph& graph, const Node& node) {
    const AttentionRule rule =
        packed_attention_rule(graph.type(node.inputs[1]).shape, node.attributes, kGradMasks);
    return attention_cost(graph, node, rule, 10.0 * static_cast<double>(rule.head_dim));
  };
  return def;
}

}  // namespace lockstep
