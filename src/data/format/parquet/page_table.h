// PageTable: where every page of a Parquet file lies and which rows it holds. Made once from the page
// headers, kept in the shard's index.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/format/byte_source.h"
#include "data/format/parquet/pages.h"

namespace lockstep::parquet {

struct ChunkPages {
  PageSpan dictionary;          // without bytes: there is none
  std::vector<PageSpan> pages;  // with values
  std::vector<int64_t> firsts;  // the first row of each piece in the row group, and the number of rows

  int64_t pieces() const { return static_cast<int64_t>(firsts.size()) - 1; }
};

// Rows that are left out, counted through the whole file.
struct RowRange {
  int64_t first = 0;
  int64_t count = 0;
};

struct PageTable {
  std::vector<std::vector<ChunkPages>> groups;  // of each row group, of each leaf
  std::vector<RowRange> bad;                    // ascending, apart from each other

  std::string to_bytes() const;
  // Throws UserError for other bytes than to_bytes gives.
  static PageTable parse(std::string_view bytes, size_t leaves);
};

// Follows the headers of one column chunk. Throws Damaged.
ChunkPages find_pages(const ByteSource& file, const ColumnChunk& chunk, const Leaf& leaf, int64_t rows);

}  // namespace lockstep::parquet
