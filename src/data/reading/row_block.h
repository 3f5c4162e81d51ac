// RowBlock: records of a block ready to be copied into batches: all columns of a record side by side, so that
// taking one record from a block touches one place in memory.
//
// Where a format keeps records compact (format/compact_rows.h), a row is one of these instead.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/big_memory.h"
#include "data/format/column_block.h"
#include "data/source/source.h"

namespace lockstep {

class RowLayout {
 public:
  explicit RowLayout(const std::vector<Column>& columns);

  int64_t row_bytes() const { return row_bytes_; }
  int64_t offset(size_t column) const { return offsets_[column]; }
  int64_t bytes(size_t column) const { return offsets_[column + 1] - offsets_[column]; }
  size_t columns() const { return offsets_.size() - 1; }

 private:
  std::vector<int64_t> offsets_;  // of each column in a row, and the end of the last
  int64_t row_bytes_;
};

class RowBlock {
 public:
  // Takes the columns of the source from a block, by name. Throws UserError if one is missing or of another
  // type or width. Rows lie in `memory`, or in the heap where it is null.
  RowBlock(const RowLayout& layout, const std::vector<Column>& columns, const ColumnBlock& block,
           BigMemory* memory = nullptr);
  // Compact rows.
  RowBlock(int64_t row_bytes, int64_t records, std::unique_ptr<std::byte[]> rows)
      : records_(records), row_bytes_(row_bytes), rows_(std::move(rows)) {}

  int64_t records() const { return records_; }
  int64_t bytes() const { return static_cast<int64_t>(sizeof(RowBlock)) + records_ * row_bytes_; }
  // Of a record, by its number in the block.
  const std::byte* row(uint32_t record) const { return rows_.data() + int64_t{record} * row_bytes_; }

 private:
  int64_t records_;
  int64_t row_bytes_;
  BigBytes rows_;
};

}  // namespace lockstep
