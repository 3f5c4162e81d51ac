// attention(q, k, v[, keys_visible][, documents][, rng]) {causal, window, scale, mask, cap, dropout, key} ->
// out, logsumexp.
//
// q is [B,T,H,D], k and v [B,S,Hkv,D]; out is like q: for each head softmax(scale * q·k) v over the keys that
// the query sees (ops/attention_rule.h says which, and what cap and dropout do). logsumexp f32 [B,H,T] is the
// logarithm of the softmax's denominator, which the gradient needs in place of the weights. A query that sees
// no key gives 0 and -inf.
//
// attention_grad(dout, q, k, v, out, logsumexp[, keys_visible][, documents][, rng]) -> dq, dk, dv.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/attention_rule.h"
#include "ops/builder.h"
#include "ops/dropout_stream.h"

namespace lockstep {
namespace {

constexpr int kForwardMasks = 3;
constexpr int kGradMasks = 6;

AttentionRule forward_rule(const Graph& graph, const Node& node) {
  return attention_rule(graph.type(node.inputs[0]).shape, graph.type(node.inputs[1]).shape, node.attributes,
                        kForwardMasks);
}

AttentionRule grad_rule(const Graph& graph, const Node& node) {
  return attention_rule(graph.type(node.inputs[1]).shape, graph.type(node.inputs[2]).shape, node.attributes,
                        kGradMasks);
}

std::vector<Type> infer(const InferContext& c) {
  check_qkv(c, 0);
  const AttentionRule rule = attention_rule(c.shape(0), c.shape(1), c.attributes(), kForwardMasks);
  check_masks(c, rule, kForwardMasks);
  return {c.type(0), {DType::kF32, {rule.batch, rule.heads, rule.queries}}};
}

std::vector<Type> infer_grad(const InferContext& c) {
  check_qkv(c, 1);
  const AttentionRule rule = attention_rule(c.shape(1), c.shape(2), c.attributes(), kGradMasks);
  check_masks(c, rule, kGradMasks);
  c.require_same_type(0, 1);
  c.require_same_type(4, 1);
  const Type logsumexp{DType::kF32, {rule.batch, rule.heads, rule.queries}};
  if (c.type(5) != logsumexp) c.fail("logsumexp (operand 5) must be {}", to_string(logsumexp));
  return {c.type(1), c.type(2), c.type(3)};
}

std::vector<Value> gradient(GradientContext& c) {
  if (c.grad(1).valid())
    throw UserError("attention: {} (the logsumexp) has no gradient; it is an output for attention_grad alone",
                    c.graph.name(c.out(1)));
  std::vector<Value> inputs{c.grad(), c.in(0), c.in(1), c.in(2), c.out(0), c.out(1)};
  inputs.insert(inputs.end(), c.node.inputs.begin() + kForwardMasks, c.node.inputs.end());
  std::vector<Value> grads = c.graph.emit_all("attention_grad", inputs, c.attributes());
  grads.resize(c.node.inputs.size());
  return grads;
}

// Calls body(query row of q, row of k, query's place in logsumexp, key) for the pairs of one query and head
// that are seen; rows are offsets of element 0 of the head.
struct Pairs {
  const ReferenceContext& c;
  AttentionRule rule;

  int64_t query_row(int64_t b, int64_t i, int64_t h) const {
    return ((b * rule.queries + i) * rule.heads + h) * rule.head_dim;
  }
  int64_t key_row(int64_t b, int64_t j, int64_t h) const {
    const int64_t kv_head = h / (rule.heads / rule.kv_heads);
    return ((b * rule.keys + j) * rule.kv_heads + kv_head) * rule.head_dim;
  }
  bool seen(int64_t b, int64_t i, int64_t j) const {
    if (!rule.sees(i, j)) return false;
    if (rule.keys_visible >= 0 && c.in(rule.keys_visible)[b * rule.keys + j] == 0) return false;
    if (rule.documents < 0) return true;
    const RefTensor& documents = c.in(rule.documents);
    return documents[b * rule.keys + i] == documents[b * rule.keys + j];
  }
  double score(const RefTensor& q, int64_t row, const RefTensor& k, int64_t key) const {
    const double plain = rule.scale * dot(q, row, k, key);
    return rule.cap > 0 ? rule.cap * std::tanh(plain / rule.cap) : plain;
  }
  // What dropout multiplies a weight by.
  double kept(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (rule.rng < 0) return 1;
    const RefTensor& rng = c.in(rule.rng);
    const Philox random(static_cast<uint64_t>(static_cast<int64_t>(rng[0])),
                        dropout_stream(rule.key, static_cast<int64_t>(rng[1])));
    const int64_t index = ((b * rule.heads + h) * rule.queries + i) * rule.keys + j;
    return random.bernoulli(static_cast<uint64_t>(index), rule.dropout) ? 0.0 : dropout_scale(rule.dropout);
  }
  double dot(const RefTensor& a, int64_t a_row, const RefTensor& b, int64_t b_row) const {
    double sum = 0;
    for (int64_t d = 0; d < rule.head_dim; ++d) sum += a[a_row + d] * b[b_row + d];
    return sum;
  }
  template <typename Body>
  void for_each_query(const Body& body) const {
    for (int64_t b = 0; b < rule.batch; ++b)
      for (int64_t h = 0; h < rule.heads; ++h)
        for (int64_t i = 0; i < rule.queries; ++i) body(b, h, i);
  }
};

void reference(const ReferenceContext& c) {
  const RefTensor& q = c.in(0);
  const RefTensor& k = c.in(1);
  const RefTensor& v = c.in(2);
  const Pairs pairs{c, attention_rule(q.shape(), k.shape(), c.attributes, kForwardMasks)};
  const AttentionRule& rule = pairs.rule;
  pairs.for_each_query([&](int64_t b, int64_t h, int64_t i) {
    const int64_t row = pairs.query_row(b, i, h);
    const double none = -std::numeric_limits<double>::infinity();
    std::vector<double> scores(static_cast<size_t>(rule.keys), none);
    double largest = none;
    for (int64_t j = 0; j < rule.keys; ++j) {
      if (!pairs.seen(b, i, j)) continue;
      const double score = pairs.score(q, row, k, pairs.key_row(b, j, h));
      scores[static_cast<size_t>(j)] = score;
      largest = std::max(largest, score);
    }
    double& logsumexp = c.out(1)[(b * rule.heads + h) * rule.queries + i];
    logsumexp = none;
    if (largest == none) return;
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - largest);
    logsumexp = largest + std::log(sum);
    for (int64_t j = 0; j < rule.keys; ++j) {
      const double weight = std::exp(scores[static_cast<size_t>(j)] - logsumexp) * pairs.kept(b, h, i, j);
      for (int64_t d = 0; d < rule.head_dim; ++d) c.out(0)[row + d] += weight * v[pairs.key_row(b, j, h) + d];
    }
  });
}

// With P the weights, M what dropout multiplies them by, and delta = dout·out: dv = M P dout, dS = P (M
// dout·v
// - delta), times the slope of the cap; dq = scale dS k, dk = scale dS q.
void reference_grad(const ReferenceContext& c) {
  const RefTensor& dout = c.in(0);
  const RefTensor& q = c.in(1);
  const RefTensor& k = c.in(2);
  const RefTensor& v = c.in(3);
  const Pairs pairs{c, attention_rule(q.shape(), k.shape(), c.attributes, kGradMasks)};
  const AttentionRule& rule = pairs.rule;
  pairs.for_each_query([&](int64_t b, int64_t h, int64_t i) {
    const int64_t row = pairs.query_row(b, i, h);
    const double logsumexp = c.in(5)[(b * rule.heads + h) * rule.queries + i];
    const double delta = pairs.dot(dout, row, c.in(4), row);
    for (int64_t j = 0; j < rule.keys; ++j) {
      if (!pairs.seen(b, i, j)) continue;
      const int64_t key = pairs.key_row(b, j, h);
      const double score = pairs.score(q, row, k, key);
      const double weight = std::exp(score - logsumexp);
      const double kept = pairs.kept(b, h, i, j);
      const double slope = rule.cap > 0 ? 1 - (score / rule.cap) * (score / rule.cap) : 1;
      const double dscore = rule.scale * slope * weight * (kept * pairs.dot(dout, row, v, key) - delta);
      for (int64_t d = 0; d < rule.head_dim; ++d) {
        c.out(0)[row + d] += dscore * k[key + d];
        c.out(1)[key + d] += dscore * q[row + d];
        c.out(2)[key + d] += kept * weight * dout[row + d];
      }
    }
  });
}

// The whole matrix of scores, as the formulas above have it. A pair that is not seen scores kUnseen, which
// no exponential survives, and its weight is multiplied by 0, for a query that sees nobody at all.
constexpr double kUnseen = -1e30;

class Scores {
 public:
  Scores(Builder& b, const AttentionRule& rule, std::span<const Value> masks) : b_(b), rule_(rule) {
    const auto position = [&](int64_t axis) {
      const std::vector<int64_t> pairs{1, 1, rule.queries, rule.keys};
      return b.op("iota", {}, {{"shape", pairs}, {"axis", axis}, {"dtype", DType::kF32}});
    };
    seen_ = b.constant(1, {DType::kF32, {1, 1, rule.queries, rule.keys}});
    if (rule.causal || rule.window > 0) {
      const Value distance =
          b.shift(b.sub(position(2), position(3)), static_cast<double>(rule.keys - rule.queries));
      const auto bound = [&](int64_t value) {
        return b.constant(static_cast<double>(value), {DType::kF32, {}});
      };
      seen_ = b.indicator("ge", distance, bound(0));
      if (rule.window > 0) seen_ = b.mul(seen_, b.indicator("lt", distance, bound(rule.window)));
    }
    size_t next = 0;
    if (rule.keys_visible >= 0) {
      const Value visible = b.cast(masks[next++], DType::kF32);
      const Value keys = b.indicator("ne", visible, b.constant(0, {DType::kF32, {}}));
      seen_ = b.mul(seen_, b.reshape(keys, {rule.batch, 1, 1, rule.keys}));
    }
    if (rule.documents >= 0) {
      const Value documents = masks[next++];
      seen_ = b.mul(seen_, b.indicator("eq", b.reshape(documents, {rule.batch, 1, rule.queries, 1}),
                                       b.reshape(documents, {rule.batch, 1, 1, rule.keys})));
    }
    if (rule.rng >= 0) rng_ = masks[next];
  }

  // [B,T,H,D] as f32 [B,H,T,D]; of keys, each head as often as there are queries of its group.
  Value queries(Value q) const { return b_.transpose(b_.cast(q, DType::kF32), {0, 2, 1, 3}); }
  Value keys(Value k) const {
    const int64_t group = rule_.heads / rule_.kv_heads;
    const Value heads = b_.reshape(queries(k), {rule_.batch, rule_.kv_heads, 1, rule_.keys, rule_.head_dim});
    const Shape repeated{rule_.batch, rule_.kv_heads, group, rule_.keys, rule_.head_dim};
    return b_.reshape(b_.broadcast(heads, repeated), {rule_.batch, rule_.heads, rule_.keys, rule_.head_dim});
  }
  // And back, summed over the group.
  Value from_queries(Value x, DType dtype) const { return b_.cast(b_.transpose(x, {0, 2, 1, 3}), dtype); }
  Value from_keys(Value x, DType dtype) const {
    const int64_t group = rule_.heads / rule_.kv_heads;
    const Shape grouped{rule_.batch, rule_.kv_heads, group, rule_.keys, rule_.head_dim};
    return from_queries(b_.sum(b_.reshape(x, grouped), {2}), dtype);
  }

  // scale q·k of all pairs [B,H,T,S], below the cap.
  Value bent(Value q, Value k) const {
    const Value all = b_.scale(b_.matmul(q, k, false, true), rule_.scale);
    return rule_.cap > 0 ? b_.scale(b_.tanh(b_.scale(all, 1 / rule_.cap)), rule_.cap) : all;
  }
  Value masked(Value all) const {
    return b_.add(b_.mul(all, seen_), b_.scale(b_.shift(seen_, -1.0), -kUnseen));
  }
  // Times the slope of the cap, at scores that are bent already.
  Value through_cap(Value gradients, Value bent) const {
    if (rule_.cap == 0) return gradients;
    const Value tangent = b_.scale(bent, 1 / rule_.cap);
    return b_.mul(gradients, b_.shift(b_.neg(b_.mul(tangent, tangent)), 1));
  }
  Value seen(Value weights) const { return b_.mul(weights, seen_); }
  Value dropped(Value weights) const {
    if (rule_.rng < 0) return weights;
    return b_.op("dropout", {weights, rng_}, {{"p", rule_.dropout}, {"key", rule_.key}});
  }

 private:
  Builder& b_;
  AttentionRule rule_;
  Value seen_;
  Value rng_;
};

std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const AttentionRule rule =
      attention_rule(b.shape(inputs[0]), b.shape(inputs[1]), node.attributes, kForwardMasks);
  const Scores all(b, rule, inputs.subspan(kForwardMasks));
  const Value scores = all.masked(all.bent(all.queries(inputs[0]), all.keys(inputs[1])));
  const Value highest = b.max(scores, {3}, true);
  const Value powers = all.seen(b.exp(b.sub(scores, highest)));
  const Value total = b.sum(powers, {3}, true);
  const Value nobody = b.indicator("eq", total, b.constant(0, {DType::kF32, {}}));
  const Value weights = all.dropped(b.div(powers, b.add(total, nobody)));
  const Value out = b.matmul(weights, all.keys(inputs[2]));
  const Value logsumexp = b.add(highest, b.log(total));
  return {all.from_queries(out, b.type(inputs[0]).dtype),
          b.reshape(logsumexp, {rule.batch, rule.heads, rule.queries})};
}

std::vector<Value> decompose_grad(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const AttentionRule rule =
      attention_rule(b.shape(inputs[1]), b.shape(inputs[2]), node.attributes, kGradMasks);
  const Scores all(b, rule, inputs.subspan(kGradMasks));
  const Value dout = all.queries(inputs[0]), q = all.queries(inputs[1]), k = all.keys(inputs[2]);
  const Value delta = b.sum(b.mul(dout, all.queries(inputs[4])), {3}, true);
  const Value logsumexp = b.reshape(inputs[5], {rule.batch, rule.heads, rule.queries, 1});
  const Value finite = b.op("maximum", {logsumexp, b.constant_like(kUnseen, logsumexp)});
  const Value scores = all.bent(q, k);
  const Value weights = all.seen(b.exp(b.sub(all.masked(scores), finite)));
  const Value dweights = all.dropped(b.matmul(dout, all.keys(inputs[3]), false, true));
  const Value dbent = b.scale(b.mul(weights, b.sub(dweights, delta)), rule.scale);
  const Value dscores = all.through_cap(dbent, scores);
  const DType dtype = b.type(inputs[1]).dtype;
  return {all.from_queries(b.matmul(dscores, k), dtype), all.from_keys(b.matmul(dscores, q, true), dtype),
          all.from_keys(b.matmul(all.dropped(weights), dout, true), dtype)};
}

// By sequences, or by heads with their key heads. One key head for all may instead be copied to everybody;
// its gradient then comes in parts.
struct Splits {
  Placement queries, keys, logsumexp, masks, dkeys;
};

std::vector<Splits> splits(const AttentionRule& rule) {
  const Placement r = Placement::replicate();
  const auto s = [](int axis) { return Placement::split(axis); };
  // A pair's draw belongs to its index among all pairs, which a part does not know.
  if (rule.dropout > 0) return {{r, r, r, r, r}};
  std::vector<Splits> result{{r, r, r, r, r}, {s(0), s(0), s(0), s(0), s(0)}, {s(2), s(2), s(1), r, s(2)}};
  if (rule.kv_heads == 1) result.push_back({s(2), r, s(1), r, Placement::partial()});
  return result;
}

std::vector<ShardingSignature> sharding(const Graph& graph, const Node& node) {
  std::vector<ShardingSignature> result;
  for (const Splits& s : splits(forward_rule(graph, node))) {
    ShardingSignature signature{{s.queries, s.keys, s.keys}, {s.queries, s.logsumexp}};
    signature.inputs.resize(node.inputs.size(), s.masks);
    result.push_back(signature);
  }
  return result;
}

std::vector<ShardingSignature> sharding_grad(const Graph& graph, const Node& node) {
  std::vector<ShardingSignature> result;
  for (const Splits& s : splits(grad_rule(graph, node))) {
    ShardingSignature signature{{s.queries, s.queries, s.keys, s.keys, s.queries, s.logsumexp},
                                {s.queries, s.dkeys, s.dkeys}};
    signature.inputs.resize(node.inputs.size(), s.masks);
    result.push_back(signature);
  }
  return result;
}

}  // namespace

OpDef attention_op() {
  OpDef def{.name = "attention", .summary = "softmax(scale * q·k) v per head, with masks"};
  def.attributes = attention_attributes();
  def.min_inputs = kForwardMasks;
  def.max_inputs = kForwardMasks + 3;
  def.infer = infer;
  def.gradient = gradient;
  def.reference = reference;
  def.decompose = decompose;
  def.sharding = sharding;
  def.cost = [](const Graph& graph, const Node& node) {
    const AttentionRule rule = forward_rule(graph, node);
    return attention_cost(graph, node, rule, 4.0 * static_cast<double>(rule.head_dim));
  };
  return def;
}

OpDef attention_grad_op() {
  OpDef def{.name = "attention_grad", .summary = "gradients of attention for q, k and v"};
  def.attributes = attention_attributes();
  def.min_inputs = kGradMasks;
  def.max_inputs = kGradMasks + 3;
  def.infer = infer_grad;
  def.reference = reference_grad;
  def.decompose = decompose_grad;
  def.sharding = sharding_grad;
  def.cost = [](const Graph& graph, const Node& node) {
    const AttentionRule rule = grad_rule(graph, node);
    return attention_cost(graph, node, rule, 10.0 * static_cast<double>(rule.head_dim));
  };
  return def;
}

}  // namespace lockstep
