// From the stored bytes of pages to the values of their rows.
//
// A piece is what is decoded at once: a page of a plain column, or all pages of a list column in a row group,
// since rows of a list may go on from page to page.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/format/column_block.h"
#include "data/format/parquet/metadata.h"

namespace lockstep::parquet {

// What a file may ask for: more is refused before memory is taken.
struct Limits {
  int64_t page_bytes = int64_t{256} << 20;
  int64_t page_values = int64_t{1} << 24;
};

// The distinct values of a column in a row group.
struct Dictionary {
  ColumnValues values;
  std::vector<uint8_t> bad;  // 1 for a text that is not valid UTF-8; empty: none
  std::shared_ptr<std::string> heap;
};

struct Piece {
  int64_t rows = 0;
  // One value per row (an element per value of lists), or the place of each in the dictionary.
  ColumnValues values;
  std::vector<uint32_t> picks;
  std::shared_ptr<const Dictionary> dictionary;
  std::vector<uint8_t> missing;                     // per row; empty: none
  std::vector<int64_t> ends;                        // of lists, per row
  std::vector<int64_t> bad_rows;                    // whose text is not valid UTF-8
  std::vector<std::shared_ptr<std::string>> heaps;  // what views point to

  int64_t bytes() const;
};

// Where a page lies: its header and what follows it.
struct PageSpan {
  int64_t offset = 0;
  int64_t bytes = 0;
};

// All throw Damaged. `page` holds the header too.
std::shared_ptr<const Dictionary> decode_dictionary(std::string_view page, const Leaf& leaf,
                                                    Codec compression, const Limits& limits);
Piece decode_page(std::string_view page, const Leaf& leaf, Codec compression,
                  std::shared_ptr<const Dictionary> dictionary, int64_t rows, const Limits& limits);
Piece decode_list(const std::vector<std::string_view>& pages, const Leaf& leaf, Codec compression,
                  std::shared_ptr<const Dictionary> dictionary, int64_t rows, const Limits& limits);

// Appends rows [first, first + count) to a column of the leaf's field. The piece outlives the block.
void append_rows(const Piece& piece, int64_t first, int64_t count, BlockColumn& column);

}  // namespace lockstep::parquet
