// Few rows of a page, and few entries of a dictionary, read from where they lie in a mapped file: the first
// batch of a run has some rows of each of many pages, and somebody waits for it. Neither the pages nor the
// dictionaries are unpacked or copied for that.
//
// Whoever uses what was read asks the file whether it has changed (ByteSource::check_unchanged).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/format/byte_source.h"
#include "data/format/parquet/open_page.h"
#include "data/format/parquet/pages.h"
#include "data/format/parquet/snappy_extents.h"

namespace lockstep::parquet {

// What is known of the column that a page belongs to.
struct PageColumn {
  const ByteSource& file;
  const Leaf& leaf;
  Codec compression;
  const Limits& limits;
};

// What some rows hold.
struct FewRows {
  bool by_dictionary = false;
  std::vector<uint32_t> picks;  // places in the dictionary, unchecked
  std::vector<char> numbers;    // as they are stored, where there is no dictionary
};

// Rows of a page of `in_page` rows, ascending. False: the page has to be read as a whole, because it is
// compressed, because of rows that are missing, or because something is wrong with it.
bool read_few_rows(const PageColumn& column, const PageSpan& span, int64_t in_page,
                   std::span<const uint32_t> rows, FewRows& out);

// A dictionary as it lies in the file.
struct StoredDictionary {
  PageSpan span;
  size_t size = 0;      // entries
  bool singly = false;  // whether single ones can be read; where these lie:
  size_t begin = 0;     // of the stream that the extents are of, in the page
  size_t width = 0;
  SnappyExtents extents;
};

// Null where the file is not mapped. Throws Damaged.
std::shared_ptr<const StoredDictionary> find_stored_dictionary(const PageColumn& column,
                                                               const PageSpan& span);
// As they are stored, one after another; all are below the dictionary's size. False: they cannot be read.
bool read_entries(const ByteSource& file, const StoredDictionary& dictionary, std::span<const uint32_t> picks,
                  std::vector<char>& out);

}  // namespace lockstep::parquet
