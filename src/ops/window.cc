#include "ops/window.h"

namespace lockstep {
namespace {

// Far above any real window, and small enough that products with extents cannot overflow.
constexpr int64_t kMaxValue = int64_t{1} << 20;

WindowAxis make_axis(int64_t input, int64_t kernel, int64_t stride, int64_t dilation, int64_t before,
                     int64_t after) {
  WindowAxis axis{input, 0, kernel, stride, dilation, before, after};
  const int64_t room = input + before + after - (dilation * (kernel - 1) + 1);
  axis.output = room < 0 ? 0 : room / stride + 1;
  return axis;
}

// Pools with no stride given move by their own size.
std::array<int64_t, 2> stride_of(const Attributes& attributes, std::array<int64_t, 2> kernel) {
  return attributes.integers("stride").empty() ? kernel : pair_attribute(attributes, "stride");
}

void check_axis(const InferContext& c, const WindowAxis& axis, std::string_view name) {
  if (axis.output > 0) return;
  c.fail(
      "a kernel of {} with dilation {} does not fit into {} {} with padding {} and {}; use a smaller kernel "
      "or more "
      "padding",
      axis.kernel, axis.dilation, axis.input, name, axis.before, axis.after);
}

}  // namespace

AttributeDef stride_attribute(std::string_view doc, std::vector<int64_t> default_value) {
  return {"stride", std::move(default_value), doc};
}

AttributeDef padding_attribute() {
  return {"padding", std::vector<int64_t>{0, 0, 0, 0},
          "[top, bottom, left, right], or [rows, columns] for both sides"};
}

AttributeDef dilation_attribute() {
  return {"dilation", std::vector<int64_t>{1, 1}, "[rows, columns] between the taps of the kernel"};
}

std::array<int64_t, 2> pair_attribute(const Attributes& attributes, std::string_view name) {
  const std::vector<int64_t>& values = attributes.integers(name);
  return {values[0], values[1]};
}

std::array<int64_t, 2> checked_pair(const InferContext& c, std::string_view name, int64_t low) {
  const std::vector<int64_t>& values = c.attributes().integers(name);
  if (values.size() != 2) c.fail("{} has {} values; write [rows, columns]", name, values.size());
  for (const int64_t value : values)
    if (value < low || value > kMaxValue)
      c.fail("{} has the value {}; use {} to {}", name, value, low, kMaxValue);
  return {values[0], values[1]};
}

Window make_window(std::array<int64_t, 2> input, std::array<int64_t, 2> kernel,
                   const Attributes& attributes) {
  const std::array<int64_t, 2> stride = stride_of(attributes, kernel);
  std::array<int64_t, 2> dilation{1, 1};
  if (attributes.find("dilation") != nullptr) dilation = pair_attribute(attributes, "dilation");
  const std::vector<int64_t>& pad = attributes.integers("padding");
  const std::array<int64_t, 4> sides = pad.size() == 4
                                           ? std::array<int64_t, 4>{pad[0], pad[1], pad[2], pad[3]}
                                           : std::array<int64_t, 4>{pad[0], pad[0], pad[1], pad[1]};
  return {make_axis(input[0], kernel[0], stride[0], dilation[0], sides[0], sides[1]),
          make_axis(input[1], kernel[1], stride[1], dilation[1], sides[2], sides[3])};
}

Window checked_window(const InferContext& c, std::array<int64_t, 2> input, std::array<int64_t, 2> kernel) {
  for (const int64_t extent : kernel)
    if (extent < 1 || extent > kMaxValue)
      c.fail("the kernel has the extent {}; use 1 to {}", extent, kMaxValue);
  if (!c.attributes().integers("stride").empty()) checked_pair(c, "stride", 1);
  if (c.attributes().find("dilation") != nullptr) checked_pair(c, "dilation", 1);
  const std::vector<int64_t>& padding = c.attributes().integers("padding");
  if (padding.size() != 2 && padding.size() != 4)
    c.fail("padding has {} values; write [top, bottom, left, right] or [rows, columns]", padding.size());
  for (const int64_t value : padding)
    if (value < 0 || value > kMaxValue) c.fail("padding has the value {}; use 0 to {}", value, kMaxValue);
  const Window window = make_window(input, kernel, c.attributes());
  check_axis(c, window.rows, "rows");
  check_axis(c, window.columns, "columns");
  return window;
}

}  // namespace lockstep
