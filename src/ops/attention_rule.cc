#include "ops/attention_rule.h"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

void read_attributes(const Attributes& attributes, int first_mask, AttentionRule& rule) {
  rule.causal = attributes.flag("causal");
  rule.window = attributes.integer("window");
  rule.scale = attributes.number("scale");
  if (rule.scale == 0) rule.scale = 1 / std::sqrt(static_cast<double>(rule.head_dim));
  const std::string& mask = attributes.text("mask");
  int next = first_mask;
  if (mask.starts_with("keys")) rule.keys_visible = next++;
  if (mask.ends_with("documents")) rule.documents = next++;
  rule.cap = attributes.number("cap");
  rule.dropout = attributes.number("dropout");
  rule.key = attributes.integer("key");
  if (rule.dropout > 0) rule.rng = next;
}

}  // namespace

double AttentionRule::visible_pairs() const {
  double pairs = 0;
  for (int64_t i = 0; i < queries; ++i) {
    const int64_t position = i + keys - queries;
    const int64_t end = causal || window > 0 ? std::clamp<int64_t>(position + 1, 0, keys) : keys;
    const int64_t begin = window > 0 ? std::clamp<int64_t>(position - window + 1, 0, end) : 0;
    pairs += static_cast<double>(end - begin);
  }
  return pairs;
}

std::vector<AttributeDef> attention_attributes() {
  return {{"causal", false, "a query sees no key after its own position"},
          {"window", int64_t{0}, "a query sees this many keys up to its own position; 0 means all"},
          {"scale", 0.0, "factor of the scores; 0 means 1 / sqrt(D)"},
          {"mask", std::string("none"), "operands that mask: none, keys, documents or keys+documents"},
          {"cap", 0.0, "scores are bent below this by a tangent; 0 means not"},
          {"dropout", 0.0, "probability that a weight is dropped; above 0, rng i64[2] is the last operand"},
          {"key", int64_t{0}, "tells this dropout's draws from those of others"}};
}

AttentionRule attention_rule(const Shape& q, const Shape& k, const Attributes& attributes, int first_mask) {
  AttentionRule rule;
  rule.batch = q[0];
  rule.queries = q[1];
  rule.keys = k[1];
  rule.heads = q[2];
  rule.kv_heads = k[2];
  rule.head_dim = q[3];
  read_attributes(attributes, first_mask, rule);
  return rule;
}

AttentionRule packed_attention_rule(const Shape& qkv, const Attributes& attributes, int first_mask) {
  AttentionRule rule;
  rule.batch = qkv[0];
  rule.queries = rule.keys = qkv[1];
  rule.heads = attributes.integer("heads");
  rule.kv_heads = attributes.integer("kv_heads");
  if (rule.kv_heads == 0) rule.kv_heads = rule.heads;
  rule.head_dim = qkv[2] / (rule.heads + 2 * rule.kv_heads);
  read_attributes(attributes, first_mask, rule);
  return rule;
}

void check_qkv(const InferContext& c, int first) {
  c.require_floating(first);
  const Type& q = c.type(first);
  const Type& k = c.type(first + 1);
  if (q.shape.rank() != 4 || k.shape.rank() != 4) c.fail("q must be [B,T,H,D], and k and v [B,S,Hkv,D]");
  if (k.dtype != q.dtype) c.fail("q and k have different element types; cast one of them");
  if (c.type(first + 2) != k)
    c.fail("k and v must have one type, they are {} and {}", to_string(k), to_string(c.type(first + 2)));
  if (k.shape[0] != q.shape[0]) c.fail("q has a batch of {}, k and v of {}", q.shape[0], k.shape[0]);
  if (k.shape[3] != q.shape[3]) c.fail("heads of q are {} wide, those of k and v {}", q.shape[3], k.shape[3]);
  if (q.shape[3] == 0) c.fail("the width of a head must be at least 1");
  if (k.shape[2] == 0 || q.shape[2] % k.shape[2] != 0)
    c.fail("{} query heads cannot share {} key heads evenly; make H a multiple of Hkv", q.shape[2],
           k.shape[2]);
}

void check_packed_qkv(const InferContext& c, int operand) {
  c.require_floating(operand);
  const Shape& qkv = c.shape(operand);
  if (qkv.rank() != 3) c.fail("qkv must be [B, T, (heads + 2 * kv_heads) * D]");
  const int64_t heads = c.attributes().integer("heads");
  const int64_t kv_heads =
      c.attributes().integer("kv_heads") == 0 ? heads : c.attributes().integer("kv_heads");
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    c.fail("heads is {} and kv_heads {}; heads must be a multiple of kv_heads, both positive", heads,
           kv_heads);
  const int64_t parts = heads + 2 * kv_heads;
  if (qkv[2] == 0 || qkv[2] % parts != 0)
    c.fail("the last extent {} of qkv is not a multiple of heads + 2 * kv_heads = {}", qkv[2], parts);
}

void check_masks(const InferContext& c, const AttentionRule& rule, int first_mask) {
  const std::string& mask = c.attributes().text("mask");
  if (mask != "none" && mask != "keys" && mask != "documents" && mask != "keys+documents")
    c.fail("mask is \"{}\"; write none, keys, documents or keys+documents", mask);
  if (rule.window < 0)
    c.fail("window is {}; write 0 for none, or the number of keys a query sees", rule.window);
  if (!(rule.cap >= 0)) c.fail("cap is {}; write 0 for none, or what scores stay below", rule.cap);
  if (!(rule.dropout >= 0 && rule.dropout < 1))
    c.fail("dropout is {}; it must be at least 0 and below 1", rule.dropout);
  const int wanted =
      first_mask + (rule.keys_visible >= 0 ? 1 : 0) + (rule.documents >= 0 ? 1 : 0) + (rule.rng >= 0 ? 1 : 0);
  if (c.count() != wanted)
    c.fail("mask is \"{}\"{}, so {} operands are expected, {} are given; set mask to what is passed", mask,
           rule.rng >= 0 ? " and there is dropout" : "", wanted, c.count());
  if (rule.rng >= 0 && c.type(rule.rng) != Type{DType::kI64, {2}})
    c.fail("rng (operand {}) must be i64[2]: seed and position", rule.rng);
  if (rule.keys_visible >= 0) {
    const Type& type = c.type(rule.keys_visible);
    const bool bytes = type.dtype == DType::kU8 || type.dtype == DType::kBool;
    if (!bytes || type.shape != Shape{rule.batch, rule.keys})
      c.fail("keys_visible (operand {}) must be u8 or bool [{},{}]", rule.keys_visible, rule.batch,
             rule.keys);
  }
  if (rule.documents >= 0) {
    if (rule.queries != rule.keys)
      c.fail("documents need as many queries as keys, not {} and {}", rule.queries, rule.keys);
    if (c.type(rule.documents) != Type{DType::kI32, {rule.batch, rule.queries}})
      c.fail("documents (operand {}) must be i32[{},{}]", rule.documents, rule.batch, rule.queries);
  }
}

Cost attention_cost(const Graph& graph, const Node& node, const AttentionRule& rule, double flops_per_pair) {
  const auto heads = static_cast<double>(rule.batch * rule.heads);
  return {flops_per_pair * heads * rule.visible_pairs(), touched_bytes(graph, node)};
}

}  // namespace lockstep
