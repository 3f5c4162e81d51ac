// What a Parquet file says about itself: its columns, and where their pages lie. Parsed from the footer and
// from page headers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/bytes/byte_source.h"
#include "data/bytes/codec.h"
#include "data/format/column_block.h"

namespace lockstep::parquet {

// As numbered in files.
enum class Physical : uint8_t { kBoolean, kInt32, kInt64, kInt96, kFloat, kDouble, kByteArray, kFixed };
enum class Encoding : uint8_t {
  kPlain = 0,
  kPlainDictionary = 2,
  kRle = 3,
  kBitPacked = 4,
  kDeltaBinaryPacked = 5,
  kDeltaLengthByteArray = 6,
  kDeltaByteArray = 7,
  kRleDictionary = 8,
  kByteStreamSplit = 9,
};
enum class PageKind : uint8_t { kData = 0, kIndex = 1, kDictionary = 2, kDataV2 = 3 };

// A column: a leaf of the schema.
struct Leaf {
  std::string name;  // of a list, the list's; of what is nested deeper, with points
  Physical physical = Physical::kInt32;
  int32_t fixed_length = 0;  // of kFixed
  bool text = false;         // to be valid UTF-8
  bool is_unsigned = false;
  int scale = -1;  // of decimals, which become f64
  int max_definition = 0;
  int max_repetition = 0;  // 1: a list
  bool optional = false;   // the value or the list as a whole may be missing
  std::string refusal;     // why it cannot be read and what to write instead; empty: it can
  // Why it is read only where it is asked for by its own name: it is a plain value of the structs of a list.
  // It is then a list of its own. Empty: it is not.
  std::string nested;

  // Why it is no column of a table; empty: it is one.
  const std::string& left_out() const { return refusal.empty() ? nested : refusal; }
  bool list() const { return max_repetition > 0; }
  // Whether it is this column, or part of it.
  bool is_of(const std::string& column) const { return name == column || name.starts_with(column + "."); }
  BlockField field() const;
};

struct ColumnChunk {
  int64_t offset = 0;  // of its first page header
  int64_t bytes = 0;
  int64_t values = 0;
  std::optional<Codec> compression;  // nothing: one that is not supported
  int codec = 0;                     // as numbered in files
};

struct RowGroup {
  int64_t rows = 0;
  std::vector<ColumnChunk> columns;  // one per leaf
};

struct FileMetadata {
  std::vector<Leaf> leaves;
  std::vector<RowGroup> groups;
};

// Reads and parses the footer. Throws UserError by file and offset.
FileMetadata read_metadata(const ByteSource& file);
// Parses the footer's structure alone; throws Damaged.
FileMetadata parse_metadata(std::string_view footer);

struct PageHeader {
  PageKind kind = PageKind::kData;
  int32_t uncompressed = 0;
  int32_t stored = 0;
  std::optional<uint32_t> crc;
  int32_t values = 0;
  Encoding encoding = Encoding::kPlain;
  Encoding definition_encoding = Encoding::kRle;
  Encoding repetition_encoding = Encoding::kRle;
  // Of version 2.
  int32_t rows = 0;
  int32_t definition_bytes = 0;
  int32_t repetition_bytes = 0;
  bool compressed = true;

  size_t header_bytes = 0;
};

// The header that the bytes begin with; throws Damaged.
PageHeader parse_page_header(std::string_view bytes);

}  // namespace lockstep::parquet
