// RowWriter: copies rows of blocks to their places in a batch. Several threads may copy different ones.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/format/column_block.h"
#include "data/reading/block_cache.h"
#include "data/reading/row_block.h"
#include "data/source/source.h"

namespace lockstep {

// A row of the layout in memory, and the row of a batch that it is for.
struct PlacedRow {
  const std::byte* from;
  uint32_t place;
};

class RowWriter {
 public:
  // Of rows as the layout has them, or compact ones. All must outlive it.
  RowWriter(const RowLayout& layout, const CompactRows* compact, Batch& batch);

  // Those that have a row.
  void copy(std::span<const BlockCache::Wanted> rows) const;
  // Rows of the layout that are already in the processor's cache. Owns nothing, locks nothing.
  void copy(std::span<const PlacedRow> rows) const;
  // Makes a row of the batch one without a record: nothing is learnt from it.
  void clear(uint32_t row) const;

 private:
  struct Part {
    std::byte* to;  // the column's first row
    size_t bytes;
    int64_t offset;  // in rows of blocks
  };
  // `of_row`: where the columns of a row go, for compact ones.
  void copy_row(const std::byte* from, uint32_t row, std::vector<std::byte*>& of_row) const;

  const CompactRows* compact_;
  const Batch& batch_;
  size_t row_bytes_;
  std::vector<Part> parts_;
};

}  // namespace lockstep
