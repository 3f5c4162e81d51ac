#include "ops/row_ids.h"

#include "base/error.h"

namespace lockstep {

void require_ids(const InferContext& c, int operand, int64_t table_rows) {
  constexpr int64_t kLimit = (int64_t{1} << 31) - 1;
  const Type& ids = c.type(operand);
  if (ids.dtype != DType::kI32 && ids.dtype != DType::kI64)
    c.fail("operand {} holds row numbers and must be i32 or i64, it is {}", operand, name_of(ids.dtype));
  if (ids.shape.numel() > kLimit) c.fail("{} ids are more than {}; cut the batch", ids.shape.numel(), kLimit);
  if (table_rows > kLimit) c.fail("{} rows are more than {}", table_rows, kLimit);
}

void fail_bad_id(std::string_view op, std::string_view ids, const Shape& shape, int64_t position, int64_t id,
                 int64_t table_rows) {
  std::string index;
  const auto strides = shape.strides();
  for (int axis = 0; axis < shape.rank(); ++axis)
    index += fmt::format("{}{}", axis == 0 ? "" : ",",
                         position / strides[static_cast<size_t>(axis)] % shape[axis]);
  throw UserError("{}: {}[{}] is {}, outside the table's rows [0, {})", op, ids, index, id, table_rows);
}

int64_t checked_id(std::string_view op, const RefTensor& ids, int64_t position, int64_t table_rows) {
  const auto id = static_cast<int64_t>(ids[position]);
  if (id < 0 || id >= table_rows) fail_bad_id(op, "ids", ids.shape(), position, id, table_rows);
  return id;
}

int row_axis(const Shape& x, const Attributes& attributes) {
  const int64_t axis = attributes.integer("axis");
  return static_cast<int>(axis < 0 ? axis + x.rank() : axis);
}

RowView rows_along(const Shape& x, int axis) {
  return {x.product(0, axis), x[axis], x.product(axis + 1, x.rank())};
}

}  // namespace lockstep
