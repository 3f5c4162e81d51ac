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

#include "base/big_memory.h"
#include "data/format/column_block.h"
#include "data/parquet/metadata.h"

namespace lockstep::parquet {

// OpenPage: a page unpacked and taken apart into levels and values, before these are decoded.

// What a file may ask for: more is refused before memory is taken.
struct Limits {
  int64_t page_bytes = int64_t{256} << 20;
  int64_t page_values = int64_t{1} << 24;
  BigMemory* memory = nullptr;  // what pages are unpacked into; null: the heap
};

// The unpacked bytes of a page, and some behind them that can be read (kReadPast).
class PageBytes {
 public:
  PageBytes(size_t size, BigMemory* memory);
  std::span<char> all() { return {reinterpret_cast<char*>(bytes_.data()), size_}; }
  int64_t size() const { return static_cast<int64_t>(size_); }

 private:
  size_t size_;
  BigBytes bytes_;
};

struct OpenPage {
  PageHeader header;
  std::shared_ptr<PageBytes> heap = {};  // what the views point to
  std::string_view repetition = {};
  std::string_view definition = {};
  std::string_view values = {};
};

// Throws Damaged; `page` holds the header too.
OpenPage open_page(std::string_view page, const Leaf& leaf, Codec compression, const Limits& limits);

// Throws Damaged where it is not that of a page with so many bytes behind it, or asks for more than is read.
void check_header(const PageHeader& header, size_t body_bytes, const Limits& limits);
int bits_for(int level);
bool is_data(const PageHeader& header);
bool by_dictionary(Encoding encoding);
// Whether the levels of a page say at once that no row is missing; if not, they have to be counted.
bool is_whole(const PageHeader& header, std::string_view definition, const Leaf& leaf);

// The distinct values of a column in a row group. Numbers of 64 bits that fit into 32 are kept in these:
// dictionaries are what takes most of the memory, and looking things up in them most of the time.
struct Dictionary {
  size_t size = 0;
  ColumnValues values;                // of the column's type, or i32 for i64
  std::vector<uint8_t> bad = {};      // 1 for a text that is not valid UTF-8; empty: none
  std::shared_ptr<PageBytes> heap{};  // what texts lie in

  int64_t bytes() const;
};

struct Piece {
  int64_t rows = 0;
  // One value per row (an element per value of lists), or indices into the dictionary. Where no row is
  // missing, plain numbers stay as they are stored, and so do indices, behind their number of bits.
  ColumnValues values;
  std::vector<uint32_t> indices;
  std::string_view stored;
  std::shared_ptr<const Dictionary> dictionary;
  std::vector<uint8_t> missing;                    // per row; empty: none
  std::vector<int64_t> ends;                       // of lists, per row
  std::vector<int64_t> bad_rows;                   // whose text is not valid UTF-8
  std::vector<std::shared_ptr<const void>> heaps;  // what views lie in
  int64_t heap_bytes = 0;

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

// Appends rows [first, first + count) to a column of the leaf's field. The piece outlives the block. Throws
// Damaged for an index that the dictionary does not have.
void append_rows(const Piece& piece, int64_t first, int64_t count, BlockColumn& column);

// The encodings of Parquet: how the values of a page are written. All of them stop at the end of what they
// are given and throw Damaged where it does not hold what is claimed.
//
// Bytes to decode are followed by at least kReadPast readable ones, so that words can be loaded across the
// end.
inline constexpr size_t kReadPast = 16;

// Numbers [first, first + count) of `bits` bits each in runs and bit-packed groups (levels, dictionary
// indices, booleans).
void decode_rle(std::string_view bytes, int bits, size_t first, size_t count, std::vector<uint32_t>& out);
// Whether all of `count` such numbers are `value`, in so few runs that it can be seen at once.
bool is_run_of(std::string_view bytes, int bits, size_t count, uint32_t value);
// Sums of packed differences. Returns how many bytes they took.
size_t decode_delta(std::string_view bytes, size_t count, std::vector<int64_t>& out);

// `count` values as they lie, without dictionary; texts are views of the bytes or of `heap`.
struct PlainValues {
  ColumnValues values;
  std::shared_ptr<std::string> heap;
};
PlainValues decode_values(Encoding encoding, const Leaf& leaf, std::string_view bytes, size_t count);

std::string_view name_of(Encoding encoding);

}  // namespace lockstep::parquet
