// IdOperand: an operand of row numbers with its table's extent, and what to say of a number outside it.
#pragma once
#include <limits>

#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/tables.h"

namespace lockstep::cuda {

class IdOperand {
 public:
  static constexpr int64_t kIgnoreNone = std::numeric_limits<int64_t>::min();

  IdOperand(const Graph& graph, const Node& node, size_t operand, int64_t table_rows, Device& device,
            int64_t ignore = kIgnoreNone)
      : operand_(operand),
        type_(in_type(graph, node, operand)),
        table_rows_(table_rows),
        ignore_(ignore),
        bad_(device.faults(), [op = std::string(node.op->name), name = graph.name(node.inputs[operand]),
                               type = type_, table_rows](int64_t position) {
          return fmt::format("{}: {}[{}] is outside the table's rows [0, {})", op, name,
                             place(type.shape, position), table_rows);
        }) {}

  int64_t count() const { return type_.shape.numel(); }
  Ids ids(const KernelArgs& args) const { return ids_at(args.inputs[operand_]); }
  Ids unbound() const { return ids_at(nullptr); }
  BadId* bad() const { return bad_.as<BadId>(); }

 private:
  static std::string place(const Shape& shape, int64_t position) {
    std::string text;
    const auto strides = shape.strides();
    for (int axis = 0; axis < shape.rank(); ++axis)
      text += fmt::format("{}{}", axis == 0 ? "" : ",",
                          position / strides[static_cast<size_t>(axis)] % shape[axis]);
    return text;
  }
  Ids ids_at(const void* data) const {
    return {data, type_.dtype == DType::kI64, type_.shape.numel(), table_rows_, ignore_};
  }

  size_t operand_;
  Type type_;
  int64_t table_rows_, ignore_;
  Faults::Place bad_;
};

}  // namespace lockstep::cuda
