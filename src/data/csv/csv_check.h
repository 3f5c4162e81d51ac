// The header of a CSV shard, which columns are wanted of it, and what a record is refused for.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/bytes/byte_source.h"
#include "data/csv/csv_scan.h"
#include "data/format/column_block.h"
#include "data/format/format.h"

namespace lockstep {

// A wanted column: which field of a line it is, and what it holds.
struct CsvWanted {
  size_t field = 0;
  BlockField column;
};

struct CsvHeader {
  std::vector<std::string> names;
  int64_t end = 0;       // the offset behind it
  char separator = ',';  // of its fields, and of those of all records

  // All of them as bytes, where no columns are named. Throws UserError for one that is not there.
  std::vector<CsvWanted> wanted(const std::vector<BlockField>& columns, const ByteSource& shard) const;
};

// The first line of a shard that is not blank, behind a byte-order mark. Without a separator that is named,
// the one of , ; tab and | that the line has most of (outside quotes) is taken. Throws UserError if it names
// no columns, or one twice, if it has another separator than the one that is named, and for UTF-16.
CsvHeader csv_header(const ByteSource& shard, std::optional<char> named);

// Says of a record what decoding would refuse it for.
class CsvCheck {
 public:
  // `missing` outlives it.
  CsvCheck(const CsvHeader& header, std::vector<CsvWanted> wanted, const MissingTexts& missing)
      : fields_(header.names.size()),
        separator_(header.separator),
        wanted_(std::move(wanted)),
        missing_(missing) {}

  std::optional<std::string> count_problem(const CsvLine& line) const;
  // `non_ascii`: there may be bytes that are not valid UTF-8.
  std::optional<std::string> problem(const CsvLine& line, bool non_ascii) const;
  std::optional<std::string> value_problem(std::string_view raw, const BlockField& column,
                                           bool non_ascii) const;

 private:
  size_t fields_;
  char separator_;
  std::vector<CsvWanted> wanted_;
  const MissingTexts& missing_;
};

// Records of a CSV shard as columns. Column by column: fields of one column are alike, and a loop over them
// is what the processor foresees best. `missing` outlives it.
std::unique_ptr<ShardDecoder> make_csv_decoder(const ByteSource& shard, const ShardIndex& index,
                                               const CsvHeader& header, std::vector<CsvWanted> wanted,
                                               const MissingTexts& missing, const CsvLoops& loops);

// How fields of CSV are written.

// What is wrong with how the field is written; nullptr: nothing.
const char* problem_of(std::string_view raw);
// The content of a field that has no problem. `unescaped` is written where the text itself does not hold it.
std::string_view unquote(std::string_view raw, std::string& unescaped);

}  // namespace lockstep
