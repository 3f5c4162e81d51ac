#include "backend/cpu/kernel_def.h"

namespace lockstep::cpu {

std::string refuse_unless_f32(const Graph& graph, const Node& node) {
  for (const auto* values : {&node.inputs, &node.outputs})
    for (const Value value : *values) {
      const DType dtype = graph.type(value).dtype;
      if (is_floating(dtype) && dtype != DType::kF32)
        return fmt::format("{} is {}; only f32 is implemented", graph.name(value), name_of(dtype));
    }
  return "";
}

std::string refuse_nothing(const Graph&, const Node&) { return ""; }

}  // namespace lockstep::cpu
