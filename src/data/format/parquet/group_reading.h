// GroupReading: what all parts of decoding rows share: one row group of a file, how its rows are encoded, and
// where its bytes and decoded pieces come from.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/format/parquet/decoder.h"
#include "data/format/parquet/encodings.h"
#include "data/format/parquet/few_rows.h"
#include "data/format/row_encoding.h"

namespace lockstep::parquet {

// Pieces that are kept beside pages and the dictionary: how these lie in the file.
inline constexpr int64_t kStoredDictionary = -2;
inline int64_t form_of(int64_t page) { return -3 - page; }

// A column of the file and the places of rows that are made of it.
struct EncodedColumn {
  size_t leaf;
  std::vector<size_t> places;
};

struct GroupReading {
  const ByteSource& bytes;
  uint64_t file;  // the number that its pieces are kept under
  const FileLayout& layout;
  PieceCache& cache;
  const RowEncoding& encoding;
  const ShardDecoder::Fetch& fetch;
  size_t group;

  const Leaf& leaf_of(const EncodedColumn& column) const { return layout.metadata.leaves[column.leaf]; }
  Codec codec_of(const EncodedColumn& column) const {
    return *layout.metadata.groups[group].columns[column.leaf].compression;
  }
  const ChunkPages& chunk_of(const EncodedColumn& column) const {
    return layout.pages.groups[group][column.leaf];
  }
  PageColumn page_column(const EncodedColumn& column) const {
    return {bytes, leaf_of(column), codec_of(column), layout.limits};
  }
  int64_t rows_of(const EncodedColumn& column, int64_t page) const {
    const std::vector<int64_t>& firsts = chunk_of(column).firsts;
    const auto at = static_cast<size_t>(page);
    return firsts[at + 1] - firsts[at];
  }
  PieceKey key_of(const EncodedColumn& column, int64_t piece) const {
    return {file, static_cast<int64_t>(group), static_cast<int64_t>(column.leaf), piece, encoding.id()};
  }

  // Bytes of the file, followed by those that may be read past them.
  std::string_view read(int64_t offset, size_t count, std::string& buffer) const {
    if (buffer.size() < count + kReadPast) buffer.resize(count + kReadPast);
    fetch.read(offset, std::span(buffer).first(count));
    std::fill_n(buffer.data() + count, kReadPast, '\0');
    return {buffer.data(), count};
  }
  [[noreturn]] void raise(const EncodedColumn& column, int64_t piece, const std::exception& damage) const {
    raise_damage(bytes, layout, group, column.leaf, piece, damage);
  }
};

}  // namespace lockstep::parquet
