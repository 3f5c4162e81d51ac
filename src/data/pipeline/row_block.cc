#include "data/pipeline/row_block.h"

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
                   std::span<const uint32_t> only, BigMemory* memory)
    : records_(only.empty() ? block.records : static_cast<int64_t>(only.size())),
      row_bytes_(layout.row_bytes()),
      rows_(memory_for(static_cast<size_t>(records_ * row_bytes_), memory)) {
  hold_only(only);
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
      const auto record = only.empty() ? static_cast<size_t>(r) : size_t{only[static_cast<size_t>(r)]};
      // Single values are most columns; they take no call.
      if (bytes == 4)
        std::memcpy(to, from + record * 4, 4);
      else
        std::memcpy(to, from + record * bytes, bytes);
    }
  }
}

RowBlock::RowBlock(int64_t row_bytes, int64_t records, std::unique_ptr<std::byte[]> rows,
                   std::span<const uint32_t> only)
    : records_(only.empty() ? records : static_cast<int64_t>(only.size())),
      row_bytes_(row_bytes),
      rows_(std::move(rows)) {
  if (only.empty()) return;
  hold_only(only);
  auto kept = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(records_ * row_bytes_));
  for (size_t r = 0; r < only.size(); ++r)
    std::memcpy(kept.get() + r * static_cast<size_t>(row_bytes_), rows_.data() + only[r] * row_bytes_,
                static_cast<size_t>(row_bytes_));
  rows_ = BigBytes(std::move(kept));
}

void RowBlock::hold_only(std::span<const uint32_t> only) {
  if (only.empty()) return;
  some_.resize(only.back() / kSome + 1);
  for (const uint32_t record : only) some_[record / kSome].records |= uint64_t{1} << record % kSome;
  int64_t before = 0;
  for (Some& some : some_) {
    some.before = before;
    before += std::popcount(some.records);
  }
}

std::unique_ptr<RowBlock> RowBlock::without(std::span<const uint64_t> marks) const {
  std::vector<uint32_t> left;
  for (uint32_t record = 0; record < marks.size() * kSome; ++record) {
    const bool held = whole() ? record < records_ : holds(record);
    if (held && (marks[record / kSome] >> record % kSome & 1) == 0) left.push_back(record);
  }
  if (left.empty()) return nullptr;
  const auto bytes = static_cast<size_t>(row_bytes_);
  BigBytes rows = rows_.others(left.size() * bytes);
  for (size_t r = 0; r < left.size(); ++r) std::memcpy(rows.data() + r * bytes, row(left[r]), bytes);
  return std::make_unique<RowBlock>(of_rows(row_bytes_, 0, std::move(rows), left));
}

}  // namespace lockstep
