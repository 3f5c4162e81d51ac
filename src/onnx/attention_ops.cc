// attention: transposes, two products and a softmax, with unseen pairs at kUnseen before it; attention_qkv
// decomposes into it. Turning heads by their positions (rope) is a product with tables of sines and cosines.
#include <cmath>

#include "onnx/onnx_ops.h"
#include "ops/attention_rule.h"
#include "ops/rope_frequencies.h"

namespace lockstep {
namespace {

constexpr double kUnseen = -1e30;  // no exponential survives it

// Key heads, each as often as there are query heads of its group; `last` are the two axes behind the heads.
std::string repeated(OnnxLowering& onnx, const Node& node, std::string heads, const AttentionRule& rule,
                     std::pair<int64_t, int64_t> last) {
  const int64_t group = rule.heads / rule.kv_heads;
  if (group == 1) return heads;
  const OnnxDim batch = onnx.dims(node.inputs[0])[0], rows{last.first}, columns{last.second};
  heads = onnx.node("Reshape", {heads, onnx.target(node, {batch, {rule.kv_heads}, {1}, rows, columns})});
  heads = onnx.node("Expand", {heads, onnx.integers({1, 1, group, 1, 1})});
  return onnx.node("Reshape", {heads, onnx.target(node, {batch, {rule.heads}, rows, columns})});
}

// As far as positions decide it: bool [T,S], or nothing where all are seen.
std::string seen_by_position(OnnxLowering& onnx, const AttentionRule& rule) {
  if (!rule.causal && rule.window == 0) return "";
  std::string bytes;
  for (int64_t query = 0; query < rule.queries; ++query)
    for (int64_t key = 0; key < rule.keys; ++key) bytes += rule.sees(query, key) ? '\1' : '\0';
  return onnx.constant(OnnxType::kBool, {rule.queries, rule.keys}, std::move(bytes));
}

std::string both(OnnxLowering& onnx, const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  return onnx.node("And", {a, b});
}

std::string seen_pairs(OnnxLowering& onnx, const Node& node, const AttentionRule& rule) {
  std::string seen = seen_by_position(onnx, rule);
  const OnnxDim batch = onnx.dims(node.inputs[0])[0];
  const OnnxDims keys{batch, {1}, {1}, {rule.keys}};
  if (rule.keys_visible >= 0) {
    const Value mask = node.inputs[static_cast<size_t>(rule.keys_visible)];
    const std::string hidden = onnx.node("Equal", {onnx.full(mask), onnx.scalar(0, onnx.type(mask))});
    seen = both(onnx, seen, onnx.node("Reshape", {onnx.node("Not", {hidden}), onnx.target(node, keys)}));
  }
  if (rule.documents >= 0) {
    const std::string documents = onnx.full(node.inputs[static_cast<size_t>(rule.documents)]);
    const OnnxDims queries{batch, {1}, {rule.queries}, {1}};
    seen = both(onnx, seen,
                onnx.node("Equal", {onnx.node("Reshape", {documents, onnx.target(node, queries)}),
                                    onnx.node("Reshape", {documents, onnx.target(node, keys)})}));
  }
  return seen;
}

void lower_attention(OnnxLowering& onnx, const Node& node) {
  const auto shape = [&](size_t operand) { return onnx.graph().type(node.inputs[operand]).shape; };
  const AttentionRule rule = attention_rule(shape(0), shape(1), node.attributes, 3);
  const auto heads = [&](size_t operand, std::vector<int64_t> axes) {
    return onnx.node("Transpose", {onnx.full(node.inputs[operand])}, {permutation(std::move(axes))});
  };
  const std::string queries = heads(0, {0, 2, 1, 3});
  const std::string keys = repeated(onnx, node, heads(1, {0, 2, 3, 1}), rule, {rule.head_dim, rule.keys});
  const std::string values = repeated(onnx, node, heads(2, {0, 2, 1, 3}), rule, {rule.keys, rule.head_dim});
  std::string scores = onnx.node("MatMul", {queries, keys});
  scores = onnx.node("Mul", {scores, onnx.scalar(rule.scale, OnnxType::kFloat)});
  if (rule.cap > 0) {
    const std::string bent =
        onnx.node("Tanh", {onnx.node("Div", {scores, onnx.scalar(rule.cap, OnnxType::kFloat)})});
    scores = onnx.node("Mul", {bent, onnx.scalar(rule.cap, OnnxType::kFloat)});
  }
  const std::string seen = seen_pairs(onnx, node, rule);
  if (!seen.empty()) scores = onnx.node("Where", {seen, scores, onnx.scalar(kUnseen, OnnxType::kFloat)});
  std::string weights = onnx.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
  // A query that sees no key at all gives 0, where the softmax would give all keys the same weight.
  if (rule.keys_visible >= 0) weights = onnx.node("Where", {seen, weights, onnx.scalar(0, OnnxType::kFloat)});
  onnx.result(node, "Transpose", {onnx.node("MatMul", {weights, values})}, {permutation({0, 2, 1, 3})});
}

bool gives_no_logsumexp(const Graph& graph, const Node& node) {
  return graph.type(node.inputs[0]).dtype == DType::kF32 && only_first_is_read(graph, node) &&
         node.attributes.number("dropout") == 0;
}

// Cosines and sines of all angles, f32 [positions, 1, pairs] each.
struct Turns {
  std::string cosines, sines;
};

Turns turns_of(OnnxLowering& onnx, const Attributes& attributes, int64_t positions, int64_t pairs) {
  const std::vector<float> frequencies = rope_frequencies(attributes, pairs);
  std::string cosines, sines;
  const auto factor = static_cast<float>(attributes.number("factor"));
  const auto append = [&](std::string& bytes, double value) {
    const float rounded = static_cast<float>(value) * factor;
    bytes.append(reinterpret_cast<const char*>(&rounded), sizeof rounded);
  };
  for (int64_t position = 0; position < positions; ++position)
    for (const float frequency : frequencies) {
      const float angle = static_cast<float>(position) * frequency;
      append(cosines, std::cos(static_cast<double>(angle)));
      append(sines, (attributes.flag("inverse") ? -1 : 1) * std::sin(static_cast<double>(angle)));
    }
  const std::vector<int64_t> dims = {positions, 1, pairs};
  return {onnx.constant(OnnxType::kFloat, dims, cosines), onnx.constant(OnnxType::kFloat, dims, sines)};
}

void lower_rope(OnnxLowering& onnx, const Node& node) {
  const Shape& x = onnx.graph().type(node.inputs[0]).shape;
  const Attributes& attributes = node.attributes;
  const auto given = [&](const char* name, int64_t otherwise) {
    return attributes.integer(name) == 0 ? otherwise : attributes.integer(name);
  };
  const int64_t heads = given("heads", x[2]), rotary = given("rotary_dim", x[3]), pairs = rotary / 2;
  const auto part = [&](const std::string& of, int64_t axis, int64_t begin, int64_t end) {
    return onnx.node("Slice", {of, onnx.integers({begin}), onnx.integers({end}), onnx.integers({axis})});
  };
  Turns turns = turns_of(onnx, attributes, given("max_position", x[1]), pairs);
  if (node.inputs.size() == 2)
    for (std::string* table : {&turns.cosines, &turns.sines})
      *table = onnx.node("Gather", {*table, onnx.full(node.inputs[1])}, {{"axis", int64_t{0}}});
  else if (given("max_position", x[1]) != x[1])
    for (std::string* table : {&turns.cosines, &turns.sines}) *table = part(*table, 0, 0, x[1]);
  const std::string whole = onnx.full(node.inputs[0]);
  const std::string turning = heads == x[2] ? whole : part(whole, 2, 0, heads);
  const std::string first = part(turning, 3, 0, pairs), second = part(turning, 3, pairs, rotary);
  const auto times = [&](const std::string& a, const std::string& b) { return onnx.node("Mul", {a, b}); };
  std::vector<std::string> pieces = {
      onnx.node("Sub", {times(first, turns.cosines), times(second, turns.sines)}),
      onnx.node("Add", {times(second, turns.cosines), times(first, turns.sines)})};
  if (rotary < x[3]) pieces.push_back(part(turning, 3, rotary, x[3]));
  if (heads == x[2]) return onnx.result(node, "Concat", pieces, {{"axis", int64_t{3}}});
  const std::string turned = onnx.node("Concat", pieces, {{"axis", int64_t{3}}});
  onnx.result(node, "Concat", {turned, part(whole, 2, heads, x[2])}, {{"axis", int64_t{2}}});
}

bool turns_halves(const Graph& graph, const Node& node) {
  return graph.type(node.inputs[0]).dtype == DType::kF32 && !node.attributes.flag("interleaved");
}

constexpr OnnxOp kOps[] = {{"attention", lower_attention, gives_no_logsumexp},
                           {"rope", lower_rope, turns_halves}};

}  // namespace

std::span<const OnnxOp> onnx_attention_ops() { return kOps; }

}  // namespace lockstep
