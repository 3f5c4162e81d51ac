#include "backend/cpu/unfold.h"

#include <algorithm>
#include <cstring>

namespace lockstep::cpu {
namespace {

constexpr int64_t kMatrixElements = 4 << 20;

void copy_floats(float* to, const float* from, int64_t count) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

}  // namespace

int64_t Unfold::images_at_once() const {
  const int64_t per_image = std::max<int64_t>(1, positions() * columns());
  return std::clamp<int64_t>(kMatrixElements / per_image, 1, std::max<int64_t>(1, shape.batch));
}

void Unfold::windows(const CpuContext& context, int64_t group, int64_t images, const float* x,
                     float* matrix) const {
  const WindowAxis& rows = shape.window.rows;
  const WindowAxis& cols = shape.window.columns;
  const int64_t depth = shape.channels_per_group();
  for_rows(context, images * positions(), rows_per_task(columns()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t image = row / positions();
      const int64_t oh = row % positions() / cols.output;
      const int64_t ow = row % cols.output;
      float* out = matrix + row * columns();
      for (int64_t kh = 0; kh < rows.kernel; ++kh)
        for (int64_t kw = 0; kw < cols.kernel; ++kw, out += depth) {
          const int64_t h = rows.position(oh, kh);
          const int64_t w = cols.position(ow, kw);
          if (rows.inside(h) && cols.inside(w))
            copy_floats(out, x + ((image * rows.input + h) * cols.input + w) * shape.channels + group * depth,
                        depth);
          else
            std::fill_n(out, depth, 0.0f);
        }
    }
  });
}

void Unfold::fold(const CpuContext& context, int64_t group, int64_t images, const float* matrix,
                  float* x) const {
  const WindowAxis& rows = shape.window.rows;
  const WindowAxis& cols = shape.window.columns;
  const int64_t depth = shape.channels_per_group();
  // The output position whose tap lies over `at`, or -1.
  const auto output_of = [](const WindowAxis& axis, int64_t at, int64_t tap) {
    const int64_t start = at + axis.before - tap * axis.dilation;
    return start >= 0 && start % axis.stride == 0 && start / axis.stride < axis.output ? start / axis.stride
                                                                                       : -1;
  };
  const int64_t pixels = images * rows.input * cols.input;
  for_rows(context, pixels, rows_per_task(columns()), [&](int64_t begin, int64_t end) {
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      const int64_t image = pixel / (rows.input * cols.input);
      const int64_t h = pixel / cols.input % rows.input;
      const int64_t w = pixel % cols.input;
      float* out = x + pixel * shape.channels + group * depth;
      std::fill_n(out, depth, 0.0f);
      for (int64_t kh = 0; kh < rows.kernel; ++kh)
        for (int64_t kw = 0; kw < cols.kernel; ++kw) {
          const int64_t oh = output_of(rows, h, kh);
          const int64_t ow = output_of(cols, w, kw);
          if (oh < 0 || ow < 0) continue;
          const int64_t row = image * positions() + oh * cols.output + ow;
          const float* in = matrix + row * columns() + (kh * cols.kernel + kw) * depth;
          for (int64_t i = 0; i < depth; ++i) out[i] += in[i];
        }
    }
  });
}

void copy_columns(const CpuContext& context, int64_t rows, int64_t columns, const float* from,
                  int64_t from_stride, float* to, int64_t to_stride) {
  for_rows(context, rows, rows_per_task(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      copy_floats(to + row * to_stride, from + row * from_stride, columns);
  });
}

}  // namespace lockstep::cpu
