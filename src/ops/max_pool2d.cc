// max_pool2d(x) -> y, index: the largest number of each window, and where it stands; and its gradient
// max_pool2d_grad(dy, index).
//
// x is [N, H, W, C]; y and index are [N, OH, OW, C]; index is row * W + column in the image. Of equal numbers
// the first in row-major order is taken; a NaN wins over every number. Padding never wins.
#include <cmath>
#include <limits>

#include "ops/builder.h"
#include "ops/pool_window.h"

namespace lockstep {
namespace {

std::vector<Type> infer_forward(const InferContext& c) {
  c.require_floating(0);
  const Window window = checked_pool_window(c, c.shape(0));
  if (c.shape(0)[1] * c.shape(0)[2] > std::numeric_limits<int32_t>::max())
    c.fail("images of {} x {} are too large for 32-bit positions", c.shape(0)[1], c.shape(0)[2]);
  const Shape shape = pooled_shape(c.shape(0), window);
  return {{c.type(0).dtype, shape}, {DType::kI32, shape}};
}

std::vector<Type> infer_grad(const InferContext& c) {
  c.require_floating(0);
  const Shape images = unpooled_shape(c, 0);
  if (c.type(1) != Type{DType::kI32, c.shape(0)})
    c.fail("index (operand 1) must be {}, as max_pool2d gives it", to_string(Type{DType::kI32, c.shape(0)}));
  return {{c.type(0).dtype, images}};
}

void reference_forward(const ReferenceContext& c) {
  const Shape& x = c.in(0).shape();
  for_each_pool_tap(x, c.out().shape(), pool_window(x, c.attributes),
                    [&](int64_t from, int64_t to, bool first) {
                      const double value = c.in(0)[from];
                      if (!first && !(value > c.out(0)[to]) && !std::isnan(value)) return;
                      c.out(0)[to] = value;
                      c.out(1)[to] = static_cast<double>(from / x[3] % (x[1] * x[2]));
                    });
}

void reference_grad(const ReferenceContext& c) {
  const Shape& x = c.out().shape();
  for_each_pool_tap(x, c.in(0).shape(), pool_window(x, c.attributes), [&](int64_t from, int64_t to, bool) {
    if (static_cast<int64_t>(c.in(1)[to]) == from / x[3] % (x[1] * x[2])) c.out()[from] += c.in(0)[to];
  });
}

}  // namespace

OpDef max_pool2d_op() {
  OpDef def{.name = "max_pool2d", .summary = "the largest number of each window, and its place"};
  def.attributes = pool_attributes();
  def.traits = {.recompute_cheap = true};
  def.infer = infer_forward;
  def.gradient = [](GradientContext& c) {
    if (!c.grad().valid()) return std::vector<Value>(1);
    return std::vector<Value>{c.graph.emit("max_pool2d_grad", {c.grad(), c.out(1)},
                                           pool_gradient_attributes(c.attributes(), c.type(c.in(0)).shape))};
  };
  def.reference = reference_forward;
  def.sharding = [](const Graph&, const Node&) { return shard_pool(1, 2); };
  def.cost = pool_cost;
  return def;
}

OpDef max_pool2d_grad_op() {
  OpDef def{.name = "max_pool2d_grad", .summary = "the gradient of max_pool2d"};
  def.attributes = pool_attributes();
  def.attributes.push_back(pool_extent_attribute());
  def.min_inputs = 2;
  def.max_inputs = 2;
  def.infer = infer_grad;
  def.reference = reference_grad;
  def.sharding = [](const Graph&, const Node&) { return shard_pool(2, 1); };
  def.cost = pool_cost;
  return def;
}

}  // namespace lockstep
