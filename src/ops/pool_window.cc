#include "ops/pool_window.h"

#include <algorithm>

namespace lockstep {
namespace {

int64_t pixels_inside(const WindowAxis& axis, int64_t out) {
  const int64_t first = std::max<int64_t>(axis.position(out, 0), 0);
  return std::min(axis.position(out, axis.kernel - 1) + 1, axis.input) - first;
}

void check_padding(const InferContext& c, const WindowAxis& axis) {
  if (axis.before >= axis.kernel || axis.after >= axis.kernel)
    c.fail("padding {} and {} leaves windows of {} without a pixel; pad by less than the kernel", axis.before,
           axis.after, axis.kernel);
}

}  // namespace

std::vector<AttributeDef> pool_attributes() {
  return {{"kernel", std::vector<int64_t>{}, "[rows, columns] of the window", true},
          stride_attribute("[rows, columns] between neighbouring windows; the kernel's when empty", {}),
          padding_attribute()};
}

AttributeDef pool_extent_attribute() {
  return {"extent", std::vector<int64_t>{}, "[rows, columns] of the images", true};
}

Attributes pool_gradient_attributes(const Attributes& forward, const Shape& images) {
  Attributes result;
  for (const char* name : {"kernel", "stride", "padding"}) result.set(name, *forward.find(name));
  result.set("extent", std::vector<int64_t>{images[1], images[2]});
  return result;
}

Window pool_window(const Shape& images, const Attributes& attributes) {
  return make_window({images[1], images[2]}, pair_attribute(attributes, "kernel"), attributes);
}

Window checked_pool_window(const InferContext& c, const Shape& images) {
  if (images.rank() != 4)
    c.fail("operand 0 must have 4 axes [batch, rows, columns, channels]; it has {}", images.rank());
  const Window window = checked_window(c, {images[1], images[2]}, checked_pair(c, "kernel", 1));
  check_padding(c, window.rows);
  check_padding(c, window.columns);
  return window;
}

Shape pooled_shape(const Shape& images, const Window& window) {
  return {images[0], window.rows.output, window.columns.output, images[3]};
}

Shape unpooled_shape(const InferContext& c, int dy) {
  const Shape& from = c.shape(dy);
  if (from.rank() != 4)
    c.fail("dy must have 4 axes [batch, rows, columns, channels]; it has {}", from.rank());
  const auto [rows, columns] = checked_pair(c, "extent", 1);
  const Shape images{from[0], rows, columns, from[3]};
  const Shape pooled = pooled_shape(images, checked_pool_window(c, images));
  if (from != pooled) c.fail("dy must have the shape of the pool's result, {}", to_string(pooled));
  return images;
}

int64_t pool_divisor(const Window& window, int64_t oh, int64_t ow, bool all) {
  return all ? window.taps() : pixels_inside(window.rows, oh) * pixels_inside(window.columns, ow);
}

std::vector<ShardingSignature> shard_pool(int inputs, int outputs) {
  std::vector<ShardingSignature> result;
  for (const Placement place : {Placement::replicate(), Placement::split(0), Placement::split(3)})
    result.push_back({std::vector<Placement>(static_cast<size_t>(inputs), place),
                      std::vector<Placement>(static_cast<size_t>(outputs), place)});
  return result;
}

Cost pool_cost(const Graph& graph, const Node& node) {
  const std::array<int64_t, 2> kernel = pair_attribute(node.attributes, "kernel");
  const Shape& a = graph.type(node.inputs[0]).shape;
  const Shape& b = graph.type(node.outputs[0]).shape;
  const bool gradient = node.attributes.find("extent") != nullptr;
  return {static_cast<double>((gradient ? a : b).numel() * kernel[0] * kernel[1]),
          touched_bytes(graph, node)};
}

}  // namespace lockstep
