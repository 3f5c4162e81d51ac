// Walks over the windows of pools: the pixels of a window, the windows over a pixel, always in row-major
// order.
#pragma once
#include <algorithm>

#include "backend/cpu/kernel_def.h"
#include "ops/window.h"

namespace lockstep::cpu {

struct PoolWalk {
  Window window;
  int64_t batch;
  int64_t channels;

  PoolWalk(const Shape& images, const Window& w) : window(w), batch(images[0]), channels(images[3]) {}

  int64_t pixels() const { return window.rows.input * window.columns.input; }     // of one image
  int64_t windows() const { return window.rows.output * window.columns.output; }  // of one image

  // body(pixel) for the pixels of window `at` that lie inside the image.
  template <typename Body>
  void for_pixels(int64_t at, const Body& body) const {
    const WindowAxis& rows = window.rows;
    const WindowAxis& columns = window.columns;
    const int64_t top = at / columns.output * rows.stride - rows.before;
    const int64_t left = at % columns.output * columns.stride - columns.before;
    for (int64_t h = std::max<int64_t>(top, 0); h < std::min(top + rows.kernel, rows.input); ++h)
      for (int64_t w = std::max<int64_t>(left, 0); w < std::min(left + columns.kernel, columns.input); ++w)
        body(h * columns.input + w);
  }

  // body(window) for the windows that cover `pixel`.
  template <typename Body>
  void for_windows(int64_t pixel, const Body& body) const {
    const int64_t h = pixel / window.columns.input;
    const int64_t w = pixel % window.columns.input;
    for (int64_t oh = first_over(window.rows, h); oh <= last_over(window.rows, h); ++oh)
      for (int64_t ow = first_over(window.columns, w); ow <= last_over(window.columns, w); ++ow)
        body(oh * window.columns.output + ow);
  }

  // Runs body(image, begin, end) over `each` positions of every image, in tasks that depend on the shape
  // alone.
  template <typename Body>
  void for_positions(const CpuContext& context, int64_t each, const Body& body) const {
    const int64_t grain = std::min(each, rows_per_task(channels));
    const int64_t pieces = ceil_div(each, grain);
    context.pool.run(batch * pieces, [&](int64_t task) {
      const int64_t begin = task % pieces * grain;
      body(task / pieces, begin, std::min(begin + grain, each));
    });
  }

 private:
  static int64_t first_over(const WindowAxis& axis, int64_t at) {
    return std::max<int64_t>(0, ceil_div(at + axis.before - axis.kernel + 1, axis.stride));
  }
  static int64_t last_over(const WindowAxis& axis, int64_t at) {
    return std::min((at + axis.before) / axis.stride, axis.output - 1);
  }
};

}  // namespace lockstep::cpu
