// round_stochastic(x, rng) {key, first}: f32 to bf16, up or down at random such that the mean is x; see
// ops/stochastic_rounding.h.
//
// rng is i64[2], (seed, position). The draws are a function of (seed, key, position) and the element's index:
// whoever rounds the same parameter at the same position sees the same numbers. Of a part of a tensor,
// `first` is the index of its first element.
#include "graph/op_def.h"
#include "ops/builder.h"
#include "ops/stochastic_rounding.h"

namespace lockstep {

OpDef round_stochastic_op() {
  OpDef def{.name = "round_stochastic", .summary = "f32 to bf16, up or down at random without bias"};
  def.attributes = {{"key", int64_t{0}, "tells these draws from those of others", true},
                    {"first", int64_t{0}, "index of element 0 among the draws; a multiple of 4"}};
  def.min_inputs = def.max_inputs = 2;
  def.traits = {.recompute_cheap = true};
  def.infer = [](const InferContext& c) {
    if (c.type(0).dtype != DType::kF32) c.fail("x (operand 0) must be f32");
    if (c.type(1) != Type{DType::kI64, {2}}) c.fail("rng (operand 1) must be i64[2]: seed and position");
    const int64_t first = c.attributes().integer("first");
    if (first < 0 || first % 4 != 0) c.fail("first is {}; it must be a multiple of 4", first);
    return std::vector<Type>{{DType::kBF16, c.shape(0)}};
  };
  // Straight through, as a cast's: the mean of the result is x.
  def.gradient = [](GradientContext& c) {
    return std::vector<Value>{Builder(c.graph).cast(c.grad(), DType::kF32), Value{}};
  };
  def.reference = [](const ReferenceContext& c) {
    const auto seed = static_cast<uint64_t>(static_cast<int64_t>(c.in(1)[0]));
    const auto position = static_cast<int64_t>(c.in(1)[1]);
    const Philox random(seed, rounding_stream(c.attributes.integer("key"), position));
    const int64_t first = c.attributes.integer("first");
    for (int64_t i = 0; i < c.out().numel(); ++i)
      c.out()[i] =
          round_stochastically(static_cast<float>(c.in(0)[i]), random.bits(static_cast<uint64_t>(first + i)));
  };
  // An element's draw belongs to its index in the whole tensor, which a split part does not know.
  def.sharding = [](const Graph&, const Node&) {
    const Placement r = Placement::replicate();
    return std::vector<ShardingSignature>{{{r, r}, {r}}};
  };
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{static_cast<double>(graph.type(node.outputs[0]).shape.numel()), touched_bytes(graph, node)};
  };
  return def;
}

}  // namespace lockstep
