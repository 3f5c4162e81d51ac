// What the pools share: attributes, shape rules, and the walk over their windows.
#pragma once
#include "ops/window.h"

namespace lockstep {

std::vector<AttributeDef> pool_attributes();  // kernel, stride, padding
AttributeDef pool_extent_attribute();         // of the gradients: the images' rows and columns
// The attributes of a gradient, made from those of its forward node.
Attributes pool_gradient_attributes(const Attributes& forward, const Shape& images);

Window pool_window(const Shape& images, const Attributes& attributes);
// Fails unless every window holds at least one pixel.
Window checked_pool_window(const InferContext& context, const Shape& images);
Shape pooled_shape(const Shape& images, const Window& window);
// The images' shape of a gradient whose operand `dy` must have the pooled shape.
Shape unpooled_shape(const InferContext& context, int dy);

// The pixels of the window at (oh, ow) that lie inside the image, or with `all` the whole window.
int64_t pool_divisor(const Window& window, int64_t oh, int64_t ow, bool all);

// `inputs` operands, `outputs` results, all images of the same batch and channels: split both or neither.
std::vector<ShardingSignature> shard_pool(int inputs, int outputs);
Cost pool_cost(const Graph& graph, const Node& node);

// Calls body(x index, y index, whether it is the window's first) for every pixel of every window, in
// row-major order.
template <typename Body>
void for_each_pool_tap(const Shape& x, const Shape& y, const Window& window, const Body& body) {
  for (int64_t to = 0; to < y.numel(); ++to) {
    const int64_t channel = to % y[3];
    const int64_t ow = to / y[3] % y[2];
    const int64_t oh = to / y[3] / y[2] % y[1];
    const int64_t image = to / y[3] / y[2] / y[1];
    bool first = true;
    for (int64_t kh = 0; kh < window.rows.kernel; ++kh)
      for (int64_t kw = 0; kw < window.columns.kernel; ++kw) {
        const int64_t h = window.rows.position(oh, kh);
        const int64_t w = window.columns.position(ow, kw);
        if (!window.rows.inside(h) || !window.columns.inside(w)) continue;
        body(((image * x[1] + h) * x[2] + w) * x[3] + channel, to, first);
        first = false;
      }
  }
}

}  // namespace lockstep
