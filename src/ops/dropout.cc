// dropout(x, rng) {p, key}: each element becomes 0 with probability p, or is divided by 1 - p.
//
// rng is i64[2], (seed, position). The mask is a function of (seed, key, position) and the element's index,
// see ops/dropout_stream.h; it is never stored: the gradient draws it again.
#include "graph/op_def.h"
#include "ops/dropout_stream.h"

namespace lockstep {

OpDef dropout_op() {
  OpDef def{.name = "dropout", .summary = "zeroes elements at random and scales up the rest"};
  def.attributes = {{"p", 0.0, "probability that an element is dropped", true},
                    {"key", int64_t{0}, "tells this dropout's draws from those of others", true}};
  def.min_inputs = def.max_inputs = 2;
  def.traits = {.recompute_cheap = true};
  def.infer = [](const InferContext& c) {
    c.require_floating(0);
    if (c.type(1) != Type{DType::kI64, {2}}) c.fail("rng (operand 1) must be i64[2]: seed and position");
    const double p = c.attributes().number("p");
    if (!(p >= 0 && p < 1)) c.fail("p is {}; it must be at least 0 and below 1", p);
    return std::vector<Type>{c.type(0)};
  };
  def.gradient = [](GradientContext& c) {
    return std::vector<Value>{c.graph.emit("dropout", {c.grad(), c.in(1)}, c.attributes()), Value{}};
  };
  def.reference = [](const ReferenceContext& c) {
    const auto seed = static_cast<uint64_t>(static_cast<int64_t>(c.in(1)[0]));
    const auto position = static_cast<int64_t>(c.in(1)[1]);
    const Philox random(seed, dropout_stream(c.attributes.integer("key"), position));
    const double p = c.attributes.number("p");
    for (int64_t i = 0; i < c.out().numel(); ++i)
      c.out()[i] = random.bernoulli(static_cast<uint64_t>(i), p) ? 0.0 : c.in(0)[i] * dropout_scale(p);
  };
  // An element's draw belongs to its index in the whole tensor, which a split part does not know.
  def.sharding = [](const Graph&, const Node&) {
    const Placement r = Placement::replicate();
    return std::vector<ShardingSignature>{{{r, r}, {r}}};
  };
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{static_cast<double>(graph.type(node.outputs[0]).shape.numel()), touched_bytes(graph, node)};
  };
  def.inplace = {{0, 0}};
  return def;
}

}  // namespace lockstep
