// RowDecoder: rows of one Parquet file straight as batches take them (data/format/row_encoding.h), without
// columns of values in between.
//
// What a column's rows are is found column by column, page by page (page_rows.h), some ten thousand rows at a
// time, so that its dictionary comes from memory once for all of them; some columns at a time are put into
// rows.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/format/parquet/decoder.h"
#include "data/format/parquet/group_reading.h"
#include "data/format/parquet/row_places.h"
#include "data/format/row_encoding.h"

namespace lockstep::parquet {

class RowDecoder {
 public:
  using Fetch = ShardDecoder::Fetch;

  // `file` is the number that its pieces are kept under. All outlive this.
  RowDecoder(const ByteSource& bytes, uint64_t file, const FileLayout& layout, PieceCache& cache)
      : bytes_(bytes), file_(file), layout_(layout), cache_(cache) {}

  // Rows of a part into `rows`, one after another: those that `only` names, ascending from the part's first
  // on, or all where there is none of it. False where values have to be looked at one by one: a label that is
  // none, text that is not UTF-8. Throws UserError for a damaged page.
  bool decode(const RowEncoding& encoding, const Part& part, const uint32_t* only, size_t count,
              const Fetch& fetch, std::byte* rows) const;

 private:
  struct Group;

  std::vector<EncodedColumn> columns_of(const RowEncoding& encoding) const;
  static std::vector<Group> groups_of(std::span<const EncodedColumn> columns);
  // take(page, its rows, which of the rows wanted these begin with) for the pages of a column that hold rows
  // [first, first + count) of a part, or the named ones; false once it gives that.
  template <typename Take>
  bool take_all(const EncodedColumn& column, const Part& part, size_t first, size_t count,
                const Take& take) const;
  template <typename Take>
  bool take_named(const EncodedColumn& column, const Part& part, std::span<const uint32_t> rows,
                  const Take& take) const;

  const ByteSource& bytes_;
  uint64_t file_;
  const FileLayout& layout_;
  PieceCache& cache_;
  mutable std::atomic<bool> reads_mapped_ = false;  // few rows were read last
};

}  // namespace lockstep::parquet
