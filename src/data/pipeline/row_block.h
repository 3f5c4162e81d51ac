// RowBlock: a block of records ready to be copied into batches: all columns of a record side by side, so that
// taking one record from a block touches one place in memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/format/column_block.h"
#include "data/source.h"

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
  // Takes the columns of the source from a block of that many records, by name. Throws UserError if one is
  // missing or of another type or width.
  RowBlock(const RowLayout& layout, const std::vector<Column>& columns, const ColumnBlock& block);

  int64_t records() const { return records_; }
  int64_t bytes() const { return static_cast<int64_t>(sizeof(RowBlock)) + records_ * row_bytes_; }
  const std::byte* row(int64_t record) const { return rows_.get() + record * row_bytes_; }

 private:
  int64_t records_;
  int64_t row_bytes_;
  std::unique_ptr<std::byte[]> rows_;
};

}  // namespace lockstep
