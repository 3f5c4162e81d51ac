// recv([after]): a value that a peer sends. `after` is a token f32[0] of something that must have run before.
#include "ops/collective.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  require_worker(c, "peer");
  if (c.count() == 1 && c.type(0) != token_type())
    c.fail("the operand must be a token, {}: what a send returns", to_string(token_type()));
  return {{c.attributes().dtype("dtype"), Shape(c.attributes().integers("shape"))}};
}

std::vector<Value> gradient(GradientContext& c) {
  Attributes attributes = same_group(c.attributes());
  attributes.set("peer", c.attributes().integer("peer"));
  return {c.graph.emit("send", {c.grad()}, attributes)};
}

}  // namespace

OpDef recv_op() {
  OpDef def = make_collective("recv", "recv_start", "recv_done", "a value that a peer sends",
                              {{"peer", int64_t{0}, "the worker of the group that sends it", true},
                               {"shape", std::vector<int64_t>{}, "of the value", true},
                               {"dtype", DType::kF32, "of the value"}});
  def.min_inputs = 0;
  def.max_inputs = 1;
  def.infer = infer;
  def.gradient = gradient;
  def.sharding = nullptr;  // the peer would have to split it alike
  return def;
}

OpDef recv_start_op() { return make_start(recv_op()); }
OpDef recv_done_op() { return make_done(recv_op()); }

}  // namespace lockstep
