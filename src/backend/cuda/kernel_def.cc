#include "backend/cuda/kernel_def.h"

#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

void copy_on(cudaStream_t stream, void* to, const void* from, int64_t bytes) {
  if (bytes == 0 || to == from) return;
  require(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream), "a copy");
}

std::string refuse_nothing(const Graph&, const Node&, Device&) { return ""; }

std::string refuse_unless_f32(const Graph& graph, const Node& node, Device&) {
  for (const auto* values : {&node.inputs, &node.outputs})
    for (const Value value : *values) {
      const DType dtype = graph.type(value).dtype;
      if (is_floating(dtype) && dtype != DType::kF32)
        return fmt::format("{} is {}; only f32 is implemented", graph.name(value), name_of(dtype));
    }
  return "";
}

std::string refuse_unless_floating(const Graph& graph, const Node& node, Device&) {
  const DType dtype = in_type(graph, node, 0).dtype;
  return is_floating(dtype) ? "" : fmt::format("{} is {}", graph.name(node.inputs[0]), name_of(dtype));
}

}  // namespace lockstep::cuda
