// RowBlock: records of a block ready to be copied into batches: all columns of a record side by side, so that
// taking one record from a block touches one place in memory. It holds all records of the block or some.
//
// Where a format keeps records compact (format/compact_rows.h), a row is one of these instead.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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
  // Takes the columns of the source from a block, by name: those of the records in `only`, ascending, or of
  // all where it is empty. Throws UserError if one is missing or of another type or width.
  RowBlock(const RowLayout& layout, const std::vector<Column>& columns, const ColumnBlock& block,
           std::span<const uint32_t> only = {});

  // Compact rows of a block's records, of which those in `only` are kept.
  RowBlock(int64_t row_bytes, int64_t records, std::unique_ptr<std::byte[]> rows,
           std::span<const uint32_t> only = {});

  // Rows of a block's records: those in `held`, in their order, or all `records` where it is empty.
  static RowBlock of_rows(int64_t row_bytes, int64_t records, std::unique_ptr<std::byte[]> rows,
                          std::span<const uint32_t> held) {
    RowBlock block(row_bytes, records, std::move(rows));
    if (held.empty()) return block;
    block.only_.assign(held.begin(), held.end());
    block.records_ = static_cast<int64_t>(held.size());
    return block;
  }

  int64_t records() const { return records_; }  // that it holds
  int64_t bytes() const {
    return static_cast<int64_t>(sizeof(RowBlock) + only_.size() * sizeof(uint32_t)) + records_ * row_bytes_;
  }
  bool holds(uint32_t record) const {
    return only_.empty() || std::binary_search(only_.begin(), only_.end(), record);
  }
  // Of a record that it holds, by its number in the block.
  const std::byte* row(uint32_t record) const {
    const int64_t at = only_.empty() ? int64_t{record}
                                     : std::lower_bound(only_.begin(), only_.end(), record) - only_.begin();
    return rows_.get() + at * row_bytes_;
  }

 private:
  std::vector<uint32_t> only_;
  int64_t records_;
  int64_t row_bytes_;
  std::unique_ptr<std::byte[]> rows_;
};

}  // namespace lockstep
