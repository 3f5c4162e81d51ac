// RowBlock: records of a block ready to be copied into batches: all columns of a record side by side, so that
// taking one record from a block touches one place in memory. It holds all records of the block or some.
//
// Where a format keeps records compact (format/compact_rows.h), a row is one of these instead.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/big_memory.h"
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
  // Rows lie in `memory`, or in the heap where it is null.
  RowBlock(const RowLayout& layout, const std::vector<Column>& columns, const ColumnBlock& block,
           std::span<const uint32_t> only = {}, BigMemory* memory = nullptr);

  // Compact rows of a block's records, of which those in `only` are kept.
  RowBlock(int64_t row_bytes, int64_t records, std::unique_ptr<std::byte[]> rows,
           std::span<const uint32_t> only = {});

  // Rows of a block's records: those in `held`, in their order, or all `records` where it is empty.
  static RowBlock of_rows(int64_t row_bytes, int64_t records, BigBytes rows, std::span<const uint32_t> held) {
    RowBlock block(row_bytes, records, nullptr);
    block.rows_ = std::move(rows);
    if (held.empty()) return block;
    block.hold_only(held);
    block.records_ = static_cast<int64_t>(held.size());
    return block;
  }

  int64_t records() const { return records_; }  // that it holds
  int64_t bytes() const {
    return static_cast<int64_t>(sizeof(RowBlock) + some_.size() * sizeof(Some)) + records_ * row_bytes_;
  }
  // The same with so many of its records, at most.
  int64_t bytes_of_some(int64_t records) const {
    const auto parts = std::max(some_.size(), static_cast<size_t>(records_ / kSome + 1));
    return static_cast<int64_t>(sizeof(RowBlock) + parts * sizeof(Some)) + records * row_bytes_;
  }
  bool holds(uint32_t record) const {
    if (some_.empty()) return true;
    const size_t at = record / kSome;
    return at < some_.size() && (some_[at].records >> record % kSome & 1) != 0;
  }
  // Of a record that it holds, by its number in the block.
  const std::byte* row(uint32_t record) const {
    if (some_.empty()) return rows_.data() + int64_t{record} * row_bytes_;
    const Some& some = some_[record / kSome];
    const uint64_t before = some.records & ((uint64_t{1} << record % kSome) - 1);
    return rows_.data() + (some.before + std::popcount(before)) * row_bytes_;
  }
  bool whole() const { return some_.empty(); }  // holds all records
  // The same without those of its records that are marked, record r by bit r % 64 of marks[r / 64]; null
  // where none are left.
  std::unique_ptr<RowBlock> without(std::span<const uint64_t> marks) const;

 private:
  static constexpr uint32_t kSome = 64;
  // Which of 64 records are held, and how many of those before them.
  struct Some {
    uint64_t records = 0;
    int64_t before = 0;
  };

  void hold_only(std::span<const uint32_t> only);

  std::vector<Some> some_;  // empty: all
  int64_t records_;
  int64_t row_bytes_;
  BigBytes rows_;
};

}  // namespace lockstep
