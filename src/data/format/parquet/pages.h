// From the stored bytes of pages to the values of their rows.
//
// A piece is what is decoded at once: a page of a plain column, or all pages of a list column in a row group,
// since rows of a list may go on from page to page.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/format/column_block.h"
#include "data/format/parquet/metadata.h"
#include "data/format/parquet/open_page.h"
#include "data/format/parquet/packed_runs.h"

namespace lockstep::parquet {

// The distinct values of a column in a row group. Numbers of 64 bits that fit into 32 are kept in these:
// dictionaries are what takes most of the memory, and looking things up in them most of the time.
struct Dictionary {
  size_t size = 0;
  ColumnValues values;           // of the column's type, or i32 for i64; empty where they are `stored`
  const char* stored = nullptr;  // in `heap`, as values of the column's type
  std::vector<uint8_t> bad;      // 1 for a text that is not valid UTF-8; empty: none
  std::shared_ptr<PageBytes> heap;

  int64_t bytes() const;
};

struct EncodedDictionary;  // encoded_dictionary.h
struct StoredDictionary;   // few_rows.h

// How the rows of a page lie in its file, where none is missing and they lie there unpacked: some of them can
// be read without the others.
struct PageForm {
  int64_t offset = 0;  // of the values, in the file
  // Places in the dictionary, unchecked; nothing: numbers as they are stored.
  std::optional<PackedRuns> picks = {};

  int64_t bytes() const { return picks ? static_cast<int64_t>(picks->bytes()) : 0; }
};

// Where no row is missing, numbers and places in the dictionary stay as they are stored: rows that are wanted
// go from there into the columns of a block.
struct Piece {
  int64_t rows = 0;
  // One value per row (an element per value of lists), or the place of each in the dictionary.
  ColumnValues values;
  std::vector<uint32_t> picks;
  std::optional<PackedRuns> packed_picks;
  const char* packed = nullptr;  // the bytes of these
  const char* stored = nullptr;
  std::shared_ptr<const Dictionary> dictionary;
  std::vector<uint8_t> missing;                    // per row; empty: none
  std::vector<int64_t> ends;                       // of lists, per row
  std::vector<int64_t> bad_rows;                   // whose text is not valid UTF-8
  std::vector<std::shared_ptr<const void>> heaps;  // what views and what is stored lie in
  int64_t heap_bytes = 0;
  // What is kept instead, where rows are encoded.
  std::shared_ptr<const EncodedDictionary> encoded;
  std::optional<PageForm> form;
  std::shared_ptr<const StoredDictionary> stored_dictionary;

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
// For who looks at its values once: as they are stored, unpacked into `heap`, which is used again.
std::shared_ptr<const Dictionary> decode_dictionary(std::string_view page, const Leaf& leaf,
                                                    Codec compression, const Limits& limits,
                                                    const std::shared_ptr<PageBytes>& heap);
Piece decode_page(std::string_view page, const Leaf& leaf, Codec compression,
                  std::shared_ptr<const Dictionary> dictionary, int64_t rows, const Limits& limits);
Piece decode_list(const std::vector<std::string_view>& pages, const Leaf& leaf, Codec compression,
                  std::shared_ptr<const Dictionary> dictionary, int64_t rows, const Limits& limits);

// Nothing where a page has no form. `offset` is where the page lies in the file.
std::optional<PageForm> find_form(std::string_view page, int64_t offset, const Leaf& leaf, Codec compression,
                                  int64_t rows, const Limits& limits);

// Appends rows [first, first + count) to a column of the leaf's field. The piece outlives the block.
void append_rows(const Piece& piece, int64_t first, int64_t count, BlockColumn& column);

}  // namespace lockstep::parquet
