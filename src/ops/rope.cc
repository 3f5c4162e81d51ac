// rope(x[, positions]) {base, frequencies, factor, rotary_dim, interleaved, heads, max_position, inverse}:
// rotary positions.
//
// x is [B,T,H,D]. Pair i of the first rotary_dim elements of a head is turned by the angle position *
// frequency[i], the product rounded to f32; the other elements pass through. A pair is elements i and i +
// rotary_dim/2, or 2i and 2i+1 when interleaved. positions is i32 [B,T]; without it token t stands at
// position t. With `heads` only the first so many heads turn: a packed qkv viewed as [B, T, H + 2 Hkv, D]
// turns its H + Hkv query and key heads in place. Cosines and sines are rounded to f32 and multiplied by
// `factor` (scaled rope). The gradient is the rotation by the opposite angle, times the same factor.
#include <cmath>

#include "base/error.h"
#include "ops/builder.h"
#include "ops/rope_frequencies.h"

namespace lockstep {
namespace {

int64_t rotary_dim(const Shape& x, const Attributes& attributes) {
  const int64_t given = attributes.integer("rotary_dim");
  return given == 0 ? x[3] : given;
}

std::vector<Type> infer(const InferContext& c) {
  c.require_floating(0);
  const Shape& x = c.shape(0);
  if (x.rank() != 4) c.fail("operand 0 must be [B,T,H,D]; reshape the heads into an axis of their own");
  const int64_t rotary = rotary_dim(x, c.attributes());
  if (rotary % 2 != 0 || rotary < 2 || rotary > x[3])
    c.fail("rotary_dim is {}; it must be even, at least 2 and at most the head's width {}", rotary, x[3]);
  if (!(c.attributes().number("base") >= 1))
    c.fail("base is {}; it must be at least 1", c.attributes().number("base"));
  if (!(c.attributes().number("factor") > 0))
    c.fail("factor is {}; it must be above 0", c.attributes().number("factor"));
  const size_t frequencies = c.attributes().numbers("frequencies").size();
  if (frequencies != 0 && static_cast<int64_t>(frequencies) != rotary / 2)
    c.fail("{} frequencies are given for {} pairs; give one per pair or none", frequencies, rotary / 2);
  const int64_t heads = c.attributes().integer("heads");
  if (heads < 0 || heads > x[2]) c.fail("heads is {}, the operand has {}", heads, x[2]);
  const int64_t max_position = c.attributes().integer("max_position");
  if (max_position < 0) c.fail("max_position is {}; write 0 for T, or the number of positions", max_position);
  if (c.count() == 2) {
    if (c.type(1) != Type{DType::kI32, {x[0], x[1]}})
      c.fail("positions (operand 1) must be i32[{},{}]", x[0], x[1]);
  } else if (max_position != 0 && max_position < x[1]) {
    c.fail("max_position {} is below the sequence length {}", max_position, x[1]);
  }
  return {c.type(0)};
}

std::vector<Value> gradient(GradientContext& c) {
  Attributes attributes = c.attributes();
  attributes.set("inverse", !attributes.flag("inverse"));
  std::vector<Value> inputs = c.node.inputs;
  inputs[0] = c.grad();
  std::vector<Value> grads = c.graph.emit_all("rope", inputs, attributes);
  grads.resize(c.node.inputs.size());
  return grads;
}

void reference(const ReferenceContext& c) {
  const Shape& shape = c.in(0).shape();
  const int64_t rotary = rotary_dim(shape, c.attributes);
  const int64_t pairs = rotary / 2;
  const std::vector<float> frequencies = rope_frequencies(c.attributes, pairs);
  const bool interleaved = c.attributes.flag("interleaved");
  const double factor = c.attributes.number("factor");
  const int64_t limit =
      c.attributes.integer("max_position") == 0 ? shape[1] : c.attributes.integer("max_position");
  const int64_t heads = c.attributes.integer("heads") == 0 ? shape[2] : c.attributes.integer("heads");
  c.out().data = c.in(0).data;
  for (int64_t token = 0; token < shape[0] * shape[1]; ++token) {
    const double position = c.inputs.size() == 2 ? c.in(1)[token] : static_cast<double>(token % shape[1]);
    if (position < 0 || position >= static_cast<double>(limit))
      throw UserError("rope: position {} is outside [0, {})", position, limit);
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t i = 0; i < pairs; ++i) {
        const int64_t row = (token * shape[2] + head) * shape[3];
        const int64_t first = row + (interleaved ? 2 * i : i);
        const int64_t second = row + (interleaved ? 2 * i + 1 : i + pairs);
        const float angle = static_cast<float>(position) * frequencies[static_cast<size_t>(i)];
        const double cosine = factor * std::cos(static_cast<double>(angle));
        const double sine =
            factor * (c.attributes.flag("inverse") ? -1 : 1) * std::sin(static_cast<double>(angle));
        c.out()[first] = c.in(0)[first] * cosine - c.in(0)[second] * sine;
        c.out()[second] = c.in(0)[second] * cosine + c.in(0)[first] * sine;
      }
  }
}

// By sequences; by tokens where their positions come along; by heads where all of them turn.
std::vector<ShardingSignature> sharding(const Graph&, const Node& node) {
  const Placement r = Placement::replicate();
  const auto s = [](int axis) { return Placement::split(axis); };
  if (node.inputs.size() == 2) {
    std::vector<ShardingSignature> result{{{r, r}, {r}}, {{s(0), s(0)}, {s(0)}}, {{s(1), s(1)}, {s(1)}}};
    if (node.attributes.integer("heads") == 0) result.push_back({{s(2), r}, {s(2)}});
    return result;
  }
  std::vector<ShardingSignature> result{{{r}, {r}}, {{s(0)}, {s(0)}}};
  if (node.attributes.integer("heads") == 0) result.push_back({{s(2)}, {s(2)}});
  return result;
}

}  // namespace

OpDef rope_op() {
  OpDef def{.name = "rope", .summary = "rotary position embedding of heads"};
  def.attributes = {
      {"base", 10000.0, "frequency i is base^(-2i / rotary_dim)"},
      {"frequencies", std::vector<double>{}, "one per pair, in place of those of base (scaled rope)"},
      {"factor", 1.0, "of the cosines and sines (scaled rope)"},
      {"rotary_dim", int64_t{0}, "leading elements of a head that turn; 0 means all"},
      {"interleaved", false, "pairs are neighbours instead of halves"},
      {"heads", int64_t{0}, "leading heads that turn; 0 means all"},
      {"max_position", int64_t{0}, "positions are below this; 0 means T"},
      {"inverse", false, "turn by the opposite angle"}};
  def.max_inputs = 2;
  def.traits = {.recompute_cheap = true};
  def.infer = infer;
  def.gradient = gradient;
  def.reference = reference;
  def.sharding = sharding;
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{3.0 * static_cast<double>(graph.type(node.outputs[0]).shape.numel()),
                touched_bytes(graph, node)};
  };
  def.inplace = {{0, 0}};
  return def;
}

}  // namespace lockstep
