// The convolution that a node asks for: the same description for conv2d and both of its gradients.
#pragma once
#include "ops/window.h"

namespace lockstep {

// Images are [batch, rows, columns, channels], filters [outputs, kernel rows, kernel columns, channels /
// groups].
struct ConvShape {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t outputs = 0;
  int64_t groups = 1;
  Window window;

  int64_t channels_per_group() const { return channels / groups; }
  int64_t outputs_per_group() const { return outputs / groups; }
  Shape input() const { return {batch, window.rows.input, window.columns.input, channels}; }
  Shape output() const { return {batch, window.rows.output, window.columns.output, outputs}; }
  Shape filter() const { return {outputs, window.rows.kernel, window.columns.kernel, channels_per_group()}; }
  double flops() const;  // of the product alone, padding counted
};

// Of a conv2d, conv2d_grad_input or conv2d_grad_filter node.
ConvShape conv_shape(const Graph& graph, const Node& node);

}  // namespace lockstep
