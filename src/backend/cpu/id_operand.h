// IdOperand: an operand of row numbers, i32 or i64, with its table's extent, for the kernels of tables.
#pragma once
#include <limits>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/sorted_ids.h"

namespace lockstep::cpu {

class IdOperand {
 public:
  // No id is left out.
  static constexpr int64_t kIgnoreNone = std::numeric_limits<int64_t>::min();

  IdOperand(const Graph& graph, const Node& node, int operand, int64_t table_rows,
            int64_t ignore = kIgnoreNone, TablePart part = {});

  int64_t count() const { return type_.shape.numel(); }
  int64_t table_rows() const { return table_rows_; }
  const TablePart& part() const { return part_; }
  // The rows that ids may name.
  int64_t all_rows() const { return part_.whole > 0 ? part_.whole : table_rows_; }
  bool wide() const { return type_.dtype == DType::kI64; }
  int64_t sort_bytes() const;  // workspace of sort(), a multiple of 64

  // Positions grouped by row. Throws UserError for an id outside the table.
  SortedIds sort(const void* ids, void* workspace) const;
  // Throws UserError for the first id outside the table, whoever found that there is one: the same words
  // every time.
  [[noreturn]] void fail(const void* ids) const;

 private:
  Type type_;
  std::string_view op_;
  std::string name_;
  int64_t table_rows_;
  int64_t ignore_;
  TablePart part_;
};

// Of embedding and its gradient.
TablePart table_part(const Attributes& attributes);

}  // namespace lockstep::cpu
