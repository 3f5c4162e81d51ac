#include "ops/conv_shape.h"

namespace lockstep {

double ConvShape::flops() const {
  const double sums = static_cast<double>(output().numel());
  return 2.0 * sums * static_cast<double>(window.taps() * channels_per_group());
}

ConvShape conv_shape(const Graph& graph, const Node& node) {
  const Shape& first = graph.type(node.inputs[0]).shape;
  const Shape& second = graph.type(node.inputs[1]).shape;
  const Shape& result = graph.type(node.outputs[0]).shape;
  const bool grad_input = node.op->name == "conv2d_grad_input";
  const bool grad_filter = node.op->name == "conv2d_grad_filter";
  const Shape& images = grad_input ? result : first;
  const Shape& filter = grad_filter ? result : second;
  ConvShape shape;
  shape.batch = images[0];
  shape.channels = images[3];
  shape.outputs = filter[0];
  shape.groups = node.attributes.integer("groups");
  shape.window = make_window({images[1], images[2]}, {filter[1], filter[2]}, node.attributes);
  return shape;
}

}  // namespace lockstep
