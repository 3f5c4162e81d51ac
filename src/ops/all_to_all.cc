// all_to_all(x): worker j gets piece j of x along split_axis from every worker, joined in the workers' order
// along concat_axis.
#include "ops/collective.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  const Type& x = c.type(0);
  const int split = c.axis(c.attributes().integer("split_axis"), x.shape.rank());
  const int concat = c.axis(c.attributes().integer("concat_axis"), x.shape.rank());
  const int64_t size = group_size(c);
  if (x.shape[split] % size != 0)
    c.fail("split_axis {} has extent {}, which {} workers cannot share evenly; pad it to {}", split,
           x.shape[split], size, (x.shape[split] + size - 1) / size * size);
  const Shape piece = x.shape.with(split, x.shape[split] / size);
  return {{x.dtype, piece.with(concat, piece[concat] * size)}};
}

// The pieces go back where they came from.
std::vector<Value> gradient(GradientContext& c) {
  Attributes inverse = c.attributes();
  inverse.set("split_axis", c.attributes().integer("concat_axis"));
  inverse.set("concat_axis", c.attributes().integer("split_axis"));
  return {c.graph.emit("all_to_all", {c.grad()}, inverse)};
}

}  // namespace

OpDef all_to_all_op() {
  OpDef def = make_collective("all_to_all", "all_to_all_start", "all_to_all_done",
                              "pieces exchanged between all workers of a group",
                              {{"split_axis", int64_t{0}, "along which x is cut, one piece per worker"},
                               {"concat_axis", int64_t{0}, "along which the pieces received are joined"}});
  def.infer = infer;
  def.gradient = gradient;
  return def;
}

OpDef all_to_all_start_op() { return make_start(all_to_all_op()); }
OpDef all_to_all_done_op() { return make_done(all_to_all_op()); }

}  // namespace lockstep
