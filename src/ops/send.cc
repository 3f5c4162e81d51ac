// send(x): hands x to a peer, which runs recv. The result is a token f32[0]: it holds nothing, and whoever
// reads it comes after the send. A stage that ends in a send is differentiated through it: the loss is
// sum(token).
#include "ops/collective.h"

namespace lockstep {
namespace {

// The peer's gradient comes back.
std::vector<Value> gradient(GradientContext& c) {
  const Type& x = c.type(c.in(0));
  Attributes attributes = c.attributes();
  attributes.set("shape", std::vector<int64_t>(x.shape.begin(), x.shape.end()));
  attributes.set("dtype", x.dtype);
  return {c.graph.emit("recv", {c.grad()}, attributes)};
}

}  // namespace

OpDef send_op() {
  OpDef def = make_collective("send", "send_start", "send_done", "a value handed to a peer",
                              {{"peer", int64_t{0}, "the worker of the group that receives it", true}});
  def.infer = [](const InferContext& c) {
    require_worker(c, "peer");
    return std::vector<Type>{token_type()};
  };
  def.gradient = gradient;
  def.sharding = nullptr;  // the peer would have to split it alike
  return def;
}

OpDef send_start_op() { return make_start(send_op()); }
OpDef send_done_op() { return make_done(send_op()); }

}  // namespace lockstep
