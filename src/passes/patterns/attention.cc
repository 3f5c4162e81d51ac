// The parts of attention, as prototypes write them, become one attention op:
//
//   s = matmul(q, k) {transpose_b=true}     q, k, v: [B,H,T,D]; k may come as [B,H,D,T] instead
//   c = mul(s, scale)                        or on q, or as a division, or not at all
//   m = where(visible, c, low)               visible: positions i >= j (causal), or a mask of keys [B,S]; or
//   none p = softmax(m)  o = matmul(p, v)
//
// The op reads [B,T,H,D]; the transposes emitted here meet those of the prototype and cancel in simplify.
// Heads of k and v that were repeated for grouped queries are taken unrepeated. `low` must be -1e9 or below,
// for which exp gives 0; a query that sees no key gives 0 instead of an average.
#include <cmath>

#include "passes/patterns/pattern.h"

namespace lockstep {
namespace {

struct Parts {
  Value q, k, v;
  double scale = 1.0;
  bool causal = false;
  bool k_transposed = false;  // k is [B,H,D,S]
  Value keys_visible;
};

class Matcher {
 public:
  explicit Matcher(const PatternContext& context) : context_(context) {}

  bool match(const Node& out, Parts& parts) {
    if (!is_product(out) || out.attributes.flag("transpose_a") || out.attributes.flag("transpose_b"))
      return false;
    const Node* softmax = context_.made_by(out.inputs[0], "softmax");
    if (softmax == nullptr || !context_.read_once(out.inputs[0])) return false;
    const int64_t axis = softmax->attributes.integer("axis");
    if (axis != -1 && axis != 3) return false;
    Value scores = softmax->inputs[0];
    while (context_.read_once(scores)) {
      if (const Node* product = context_.made_by(scores, "matmul")) {
        return is_product(*product) && !product->attributes.flag("transpose_a") &&
               finish(*product, out.inputs[1], parts);
      }
      const Value inner = unscaled(scores, parts.scale);
      if (inner.valid()) {
        scores = inner;
        continue;
      }
      const Node* where = context_.made_by(scores, "where");
      if (where == nullptr || !masked(*where, parts, scores)) return false;
    }
    return false;
  }

 private:
  const Shape& shape(Value value) const { return context_.old().type(value).shape; }

  bool is_product(const Node& node) const {
    return node.op->name == "matmul" && node.inputs.size() == 2 && node.attributes.text("dtype").empty() &&
           shape(node.inputs[0]).rank() == 4 && shape(node.inputs[1]).rank() == 4;
  }

  // Looks through broadcasts and reshapes.
  Value spread_from(Value value) const {
    for (;;) {
      const Node* node = context_.made_by(value, "broadcast");
      if (node == nullptr) node = context_.made_by(value, "reshape");
      if (node == nullptr) return value;
      value = node->inputs[0];
    }
  }

  // Looks through broadcasts and reshapes that leave the last two axes alone.
  Value same_for_all_heads(Value value) const {
    for (;;) {
      const Node* node = context_.made_by(value, "broadcast");
      if (node == nullptr) node = context_.made_by(value, "reshape");
      if (node == nullptr) return value;
      const Shape& from = shape(node->inputs[0]);
      const Shape& to = shape(value);
      if (from.rank() < 2 || to.rank() < 2 || from[-1] != to[-1] || from[-2] != to[-2]) return value;
      value = node->inputs[0];
    }
  }

  const Node* constant(Value value) const { return context_.made_by(spread_from(value), "constant"); }

  // x of mul(x, c) or div(x, c), with the constant taken into scale; otherwise no value.
  Value unscaled(Value value, double& scale) const {
    if (const Node* mul = context_.made_by(value, "mul")) {
      for (const size_t factor : {size_t{0}, size_t{1}}) {
        const Node* c = constant(mul->inputs[factor]);
        if (c == nullptr) continue;
        scale *= c->attributes.number("value");
        return mul->inputs[1 - factor];
      }
    }
    if (const Node* div = context_.made_by(value, "div")) {
      const Node* c = constant(div->inputs[1]);
      if (c == nullptr || c->attributes.number("value") == 0) return {};
      scale /= c->attributes.number("value");
      return div->inputs[0];
    }
    return {};
  }

  // where(visible, scores, low) or where(hidden, low, scores).
  bool masked(const Node& where, Parts& parts, Value& scores) const {
    // A factor outside of the mask would scale `low` as well.
    if (parts.scale != 1.0) return false;
    const bool inverted = constant(where.inputs[1]) != nullptr;
    const Node* low = constant(where.inputs[inverted ? 1 : 2]);
    if (low == nullptr || !(low->attributes.number("value") <= -1e9)) return false;
    const Value condition = where.inputs[0];
    scores = where.inputs[inverted ? 2 : 1];
    if (is_causal(condition, inverted, shape(scores))) {
      parts.causal = true;
      return true;
    }
    if (inverted || parts.keys_visible.valid()) return false;
    parts.keys_visible = keys_of(condition, shape(scores));
    return parts.keys_visible.valid();
  }

  // compare(row index, column index), as the last two axes of the scores, which must be square.
  bool is_causal(Value condition, bool inverted, const Shape& scores) const {
    const Node* compare = context_.made_by(same_for_all_heads(condition), "compare");
    if (compare == nullptr || scores[-1] != scores[-2]) return false;
    const int left = index_axis(compare->inputs[0]);
    const int right = index_axis(compare->inputs[1]);
    const std::string& order = compare->attributes.text("op");
    if (left == -2 && right == -1) return order == (inverted ? "lt" : "ge");
    if (left == -1 && right == -2) return order == (inverted ? "gt" : "le");
    return false;
  }

  // The axis, from the end, whose index a value holds; 0 when it holds something else.
  int index_axis(Value value) const {
    const int rank = shape(value).rank();
    if (const Node* iota = context_.made_by(value, "iota")) {
      const auto axis = static_cast<int>(iota->attributes.integer("axis"));
      return axis < 0 ? axis : axis - rank;
    }
    // A row or column of indices, repeated.
    const Node* broadcast = context_.made_by(value, "broadcast");
    if (broadcast == nullptr) return 0;
    const Value source = broadcast->inputs[0];
    if (const Node* reshape = context_.made_by(source, "reshape")) {
      const Node* iota = context_.made_by(reshape->inputs[0], "iota");
      if (iota == nullptr || shape(reshape->inputs[0]).rank() != 1) return 0;
      const int64_t count = shape(reshape->inputs[0])[0];
      for (const int axis : {-1, -2})
        if (-axis <= shape(source).rank() && shape(source)[axis] == count && shape(source).numel() == count)
          return axis;
      return 0;
    }
    return index_axis(source);
  }

  // The [B,S] mask behind broadcast(reshape(mask) {shape=[B,1,1,S]}), or no value.
  Value keys_of(Value condition, const Shape& scores) const {
    const Node* broadcast = context_.made_by(condition, "broadcast");
    if (broadcast == nullptr) return {};
    const Node* reshape = context_.made_by(broadcast->inputs[0], "reshape");
    if (reshape == nullptr) return {};
    const Value mask = reshape->inputs[0];
    const bool fits = shape(mask) == Shape{scores[0], scores[3]} &&
                      shape(broadcast->inputs[0]) == Shape{scores[0], 1, 1, scores[3]};
    return fits ? mask : Value{};
  }

  // k of repeated heads: reshape(broadcast(reshape(k) {[B,Hkv,1,S,D]}) {[B,Hkv,G,S,D]}) {[B,Hkv*G,S,D]}.
  Value unrepeated(Value value) const {
    const Node* joined = context_.made_by(value, "reshape");
    const Node* repeated = joined != nullptr ? context_.made_by(joined->inputs[0], "broadcast") : nullptr;
    const Node* opened = repeated != nullptr ? context_.made_by(repeated->inputs[0], "reshape") : nullptr;
    if (opened == nullptr || shape(opened->inputs[0]).rank() != 4) return value;
    const Shape& source = shape(opened->inputs[0]);
    const Shape& wide = shape(joined->inputs[0]);
    if (shape(repeated->inputs[0]) != Shape{source[0], source[1], 1, source[2], source[3]} ||
        wide.rank() != 5 || wide != Shape{source[0], source[1], wide[2], source[2], source[3]} ||
        shape(value) != Shape{source[0], source[1] * wide[2], source[2], source[3]})
      return value;
    return opened->inputs[0];
  }

  Value without_scale(Value value, double& scale) const {
    const Value inner = unscaled(value, scale);
    return inner.valid() && shape(inner).rank() == 4 ? inner : value;
  }

  bool finish(const Node& product, Value v, Parts& parts) const {
    parts.q = without_scale(product.inputs[0], parts.scale);
    parts.k = without_scale(product.inputs[1], parts.scale);
    parts.k_transposed = !product.attributes.flag("transpose_b");
    parts.v = v;
    if (!parts.k_transposed) {
      const Value k = unrepeated(parts.k);
      const Value narrow_v = unrepeated(v);
      if (shape(k)[1] == shape(narrow_v)[1]) {
        parts.k = k;
        parts.v = narrow_v;
      }
    }
    const Shape& k = shape(parts.k);
    const Shape& value = shape(parts.v);
    const int64_t keys = k[parts.k_transposed ? 3 : 2];
    const int64_t width = k[parts.k_transposed ? 2 : 3];
    return width > 0 && parts.scale != 0 && value[0] == k[0] && value[1] == k[1] && value[2] == keys &&
           value[3] == width;
  }

  const PatternContext& context_;
};

bool apply(PatternContext& context, int32_t n) {
  const Node& out = context.node(n);
  Parts parts;
  if (out.op->name != "matmul" || !Matcher(context).match(out, parts)) return false;
  Graph& graph = context.graph();
  const std::vector<int64_t> swap_heads{0, 2, 1, 3};
  const auto transposed = [&](Value old, const std::vector<int64_t>& permutation) {
    return graph.emit("transpose", {context.rewriter().mapped(old)}, {{"permutation", permutation}});
  };
  std::vector<Value> inputs{
      transposed(parts.q, swap_heads),
      transposed(parts.k, parts.k_transposed ? std::vector<int64_t>{0, 3, 1, 2} : swap_heads),
      transposed(parts.v, swap_heads)};
  if (parts.keys_visible.valid()) inputs.push_back(context.rewriter().mapped(parts.keys_visible));
  const auto results = graph.emit_all("attention", inputs,
                                      {{"causal", parts.causal},
                                       {"scale", parts.scale},
                                       {"mask", std::string(parts.keys_visible.valid() ? "keys" : "none")}});
  context.replace(out.outputs[0], graph.emit("transpose", {results[0]}, {{"permutation", swap_heads}}));
  return true;
}

}  // namespace

Pattern attention_pattern() { return {"attention", {"matmul"}, apply}; }

}  // namespace lockstep
