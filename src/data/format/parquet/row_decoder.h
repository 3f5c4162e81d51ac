// RowDecoder: rows of one Parquet file straight as batches take them (data/format/row_encoding.h), without
// columns of values in between.
//
// A dictionary is encoded once, entry by entry, and kept like that, so a row takes a look into it and no
// arithmetic. Pages that lie in the file as they are, which those of dictionary indices mostly do, are not
// kept at all: of them only the bytes with the rows that are wanted are read. Few rows of a page are read
// from the mapped file where they lie, and then few entries of the dictionary too (few_rows.h). What a
// column's rows are is found column by column, and put into rows at the end, some at a time.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "data/format/parquet/decoder.h"
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
  struct Column;
  class Stretch;

  std::vector<Column> columns_of(const RowEncoding& encoding) const;

  const ByteSource& bytes_;
  uint64_t file_;
  const FileLayout& layout_;
  PieceCache& cache_;
  mutable std::atomic<bool> reads_mapped_ = false;  // few rows were read last
};

}  // namespace lockstep::parquet
