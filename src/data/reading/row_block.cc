#include "data/reading/row_block.h"

#include <cstring>

#include "base/error.h"

namespace lockstep {
namespace {

bool holds_type(ValueType type, DType dtype) {
  return (type == ValueType::kF32 && dtype == DType::kF32) ||
         (type == ValueType::kI32 && dtype == DType::kI32) || (type == ValueType::kU8 && dtype == DType::kU8);
}

BigBytes memory_for(size_t bytes, BigMemory* memory) {
  return memory != nullptr ? memory->take(bytes)
                           : BigBytes(std::make_unique_for_overwrite<std::byte[]>(bytes));
}

const void* data_of(const BlockColumn& column) {
  return std::visit([](const auto& values) -> const void* { return values.data(); }, column.values);
}

}  // namespace

RowLayout::RowLayout(const std::vector<Column>& columns) : offsets_{0} {
  for (const Column& column : columns)
    offsets_.push_back(offsets_.back() + column.shape.numel() * size_of(column.dtype));
  row_bytes_ = offsets_.back();
}

RowBlock::RowBlock(const RowLayout& layout, const std::vector<Column>& columns, const ColumnBlock& block,
                   BigMemory* memory)
    : records_(block.records),
      row_bytes_(layout.row_bytes()),
      rows_(memory_for(static_cast<size_t>(records_ * row_bytes_), memory)) {
  check_block(block);
  for (size_t c = 0; c < columns.size(); ++c) {
    const BlockColumn& column = block.column(columns[c].name);
    if (!holds_type(column.type(), columns[c].dtype) || column.width != columns[c].shape.numel())
      throw UserError("column '{}' is {} of width {}, but is taken as {}{}", column.name,
                      name_of(column.type()), column.width, name_of(columns[c].dtype),
                      to_string(columns[c].shape));
    const auto bytes = static_cast<size_t>(layout.bytes(c));
    const std::byte* from = static_cast<const std::byte*>(data_of(column));
    std::byte* to = rows_.data() + layout.offset(c);
    for (int64_t r = 0; r < records_; ++r, to += row_bytes_) {
      const auto record = static_cast<size_t>(r);
      // Single values are most columns; they take no call.
      if (bytes == 4)
        std::memcpy(to, from + record * 4, 4);
      else
        std::memcpy(to, from + record * bytes, bytes);
    }
  }
}

}  // namespace lockstep
