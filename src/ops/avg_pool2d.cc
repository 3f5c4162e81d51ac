// avg_pool2d(x): the mean of each window, and its gradient avg_pool2d_grad(dy).
//
// x is [N, H, W, C]. With count_include_pad the sum is divided by the size of the whole window, otherwise by
// the number of pixels that lie inside the image.
#include "ops/builder.h"
#include "ops/pool_window.h"

namespace lockstep {
namespace {

std::vector<AttributeDef> attributes() {
  std::vector<AttributeDef> result = pool_attributes();
  result.push_back({"count_include_pad", true, "divide by the whole window where it lies over padding"});
  return result;
}

Attributes gradient_attributes(const Attributes& from, const Shape& images) {
  Attributes result = pool_gradient_attributes(from, images);
  result.set("count_include_pad", from.flag("count_include_pad"));
  return result;
}

// Calls body(x index, y index, 1 / divisor) for every pixel of every window.
template <typename Body>
void for_each_share(const Shape& x, const Shape& y, const Attributes& attributes, const Body& body) {
  const Window window = pool_window(x, attributes);
  const bool all = attributes.flag("count_include_pad");
  for_each_pool_tap(x, y, window, [&](int64_t from, int64_t to, bool) {
    const int64_t oh = to / y[3] / y[2] % y[1];
    const int64_t ow = to / y[3] % y[2];
    body(from, to, 1.0 / static_cast<double>(pool_divisor(window, oh, ow, all)));
  });
}

}  // namespace

OpDef avg_pool2d_op() {
  OpDef def{.name = "avg_pool2d", .summary = "the mean of each window"};
  def.attributes = attributes();
  def.traits = {.recompute_cheap = true};
  def.infer = [](const InferContext& c) {
    c.require_floating(0);
    return std::vector<Type>{{c.type(0).dtype, pooled_shape(c.shape(0), checked_pool_window(c, c.shape(0)))}};
  };
  def.gradient = [](GradientContext& c) {
    return std::vector<Value>{c.graph.emit("avg_pool2d_grad", {c.grad()},
                                           gradient_attributes(c.attributes(), c.type(c.in(0)).shape))};
  };
  def.reference = [](const ReferenceContext& c) {
    for_each_share(c.in(0).shape(), c.out().shape(), c.attributes,
                   [&](int64_t from, int64_t to, double share) { c.out()[to] += c.in(0)[from] * share; });
  };
  def.sharding = [](const Graph&, const Node&) { return shard_pool(1, 1); };
  def.cost = pool_cost;
  return def;
}

OpDef avg_pool2d_grad_op() {
  OpDef def{.name = "avg_pool2d_grad", .summary = "the gradient of avg_pool2d"};
  def.attributes = attributes();
  def.attributes.push_back(pool_extent_attribute());
  def.infer = [](const InferContext& c) {
    c.require_floating(0);
    return std::vector<Type>{{c.type(0).dtype, unpooled_shape(c, 0)}};
  };
  def.gradient = [](GradientContext& c) {
    Attributes forward;
    for (const char* name : {"kernel", "stride", "padding", "count_include_pad"})
      forward.set(name, *c.attributes().find(name));
    return std::vector<Value>{c.graph.emit("avg_pool2d", {c.grad()}, forward)};
  };
  def.reference = [](const ReferenceContext& c) {
    for_each_share(c.out().shape(), c.in(0).shape(), c.attributes,
                   [&](int64_t from, int64_t to, double share) { c.out()[from] += c.in(0)[to] * share; });
  };
  def.sharding = [](const Graph&, const Node&) { return shard_pool(1, 1); };
  def.cost = pool_cost;
  return def;
}

}  // namespace lockstep
