// The geometry of a window that slides over images: what convolutions and pools share.
#pragma once
#include <array>

#include "graph/op_def.h"

namespace lockstep {

// One of the two axes. Output position o covers input positions o * stride - before + tap * dilation, taps
// 0..kernel-1; those outside [0, input) are padding.
struct WindowAxis {
  int64_t input = 0;
  int64_t output = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;
  int64_t after = 0;

  int64_t position(int64_t out, int64_t tap) const { return out * stride - before + tap * dilation; }
  bool inside(int64_t at) const { return at >= 0 && at < input; }
};

struct Window {
  WindowAxis rows, columns;
  int64_t taps() const { return rows.kernel * columns.kernel; }
};

// The attributes stride, padding and, for convolutions, dilation.
AttributeDef stride_attribute(std::string_view doc, std::vector<int64_t> default_value);
AttributeDef padding_attribute();
AttributeDef dilation_attribute();

// Reads stride, padding and dilation for a kernel over images of the given extents, and computes the
// output's. The attributes must have passed checked_window.
Window make_window(std::array<int64_t, 2> input, std::array<int64_t, 2> kernel, const Attributes& attributes);

// Fails with the attribute to change when a list has the wrong length, a value is out of range, or the kernel
// does not fit into the padded image.
Window checked_window(const InferContext& context, std::array<int64_t, 2> input,
                      std::array<int64_t, 2> kernel);

// The pair of an attribute that was checked.
std::array<int64_t, 2> pair_attribute(const Attributes& attributes, std::string_view name);
// Fails unless attribute `name` is a list of two numbers in [low, 2^20].
std::array<int64_t, 2> checked_pair(const InferContext& context, std::string_view name, int64_t low);

}  // namespace lockstep
