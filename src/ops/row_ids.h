// Ids of rows: what embedding, gather, scatter_add and embedding_bag share.
#pragma once
#include <string_view>

#include "graph/op_def.h"

namespace lockstep {

// Fails unless the operand is i32 or i64, and it and the table are small enough to be sorted by 32-bit ids.
void require_ids(const InferContext& context, int operand, int64_t table_rows);

// "embedding: ids[2,17] is 50300, outside the table's rows [0, 50257)". position is the flat index into
// shape.
[[noreturn]] void fail_bad_id(std::string_view op, std::string_view ids, const Shape& shape, int64_t position,
                              int64_t id, int64_t table_rows);

// The interpreter's reading of ids: checked like the kernels do.
int64_t checked_id(std::string_view op, const RefTensor& ids, int64_t position, int64_t table_rows);

// x seen as [outer, rows, inner] around an axis.
struct RowView {
  int64_t outer, rows, inner;
};
RowView rows_along(const Shape& x, int axis);
// Attribute `axis`, resolved: negative ones count from the end.
int row_axis(const Shape& x, const Attributes& attributes);

}  // namespace lockstep
