#include "backend/cpu/id_operand.h"

#include "base/error.h"
#include "ops/row_ids.h"

namespace lockstep::cpu {

IdOperand::IdOperand(const Graph& graph, const Node& node, int operand, int64_t table_rows, int64_t ignore,
                     TablePart part)
    : type_(graph.type(node.inputs[static_cast<size_t>(operand)])),
      op_(node.op->name),
      name_(graph.name(node.inputs[static_cast<size_t>(operand)])),
      table_rows_(table_rows),
      ignore_(ignore),
      part_(part) {}

int64_t IdOperand::sort_bytes() const {
  return ceil_div(static_cast<int64_t>(sorted_ids_bytes(count())), 64) * 64;
}

SortedIds IdOperand::sort(const void* ids, void* workspace) const {
  const auto n = static_cast<size_t>(count());
  const std::span<std::byte> room(static_cast<std::byte*>(workspace), static_cast<size_t>(sort_bytes()));
  const SortedIds sorted =
      wide() ? sort_ids(std::span(static_cast<const int64_t*>(ids), n), table_rows_, ignore_, room, part_)
             : sort_ids(std::span(static_cast<const int32_t*>(ids), n), table_rows_, ignore_, room, part_);
  if (sorted.bad_position >= 0) fail(ids);
  return sorted;
}

void IdOperand::fail(const void* ids) const {
  for (int64_t i = 0; i < count(); ++i) {
    const int64_t id = wide() ? static_cast<const int64_t*>(ids)[i] : static_cast<const int32_t*>(ids)[i];
    if (id != ignore_ && (id < 0 || id >= all_rows()))
      fail_bad_id(op_, name_, type_.shape, i, id, all_rows());
  }
  throw InternalError("{}: all ids of {} are inside the table", op_, name_);
}

TablePart table_part(const Attributes& attributes) {
  return {attributes.integer("first"), attributes.integer("whole")};
}

}  // namespace lockstep::cpu
