// ColumnSample: what the first records of a table show of a column, from which its role follows where the job
// names none, and why a column has none.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/shards/shard_set.h"
#include "data/table/table_report.h"
#include "data/transform/table_encoding.h"

namespace lockstep {

struct ColumnSample {
  int64_t records = 0;      // that were looked at
  int64_t present = 0;      // of them with a value
  int64_t numbers = 0;      // of these values
  int64_t distinct = 0;     // likewise
  bool stays_text = false;  // the file says that it holds text, which is not read as numbers

  // Nearly all values are numbers: it is numeric, and what else it holds is a bad value or a missing one.
  ColumnLook look() const;
  // Why it is left out, where its look says so, and what to write to use it all the same.
  LeftOutColumn left_out(std::string name) const;
  bool operator==(const ColumnSample&) const = default;
};

// Of every column that holds one value in a record, in the order of the shard's fields.
std::vector<ColumnSample> sample_columns(const ShardSet& shard, int64_t records);

// As kept in a file; nothing where the text is not that of so many columns.
std::string to_text(const std::vector<ColumnSample>& samples);
std::optional<std::vector<ColumnSample>> parse_samples(std::string_view text, size_t columns);

// The columns of a table's first shard that neither the encoding nor a transform takes. `fields` are all of
// them, `samples` those of single values or none where roles are named; `unread` are those that the format
// passes over.
std::vector<LeftOutColumn> left_out_columns(const EncodingOptions& options, const TableEncoding& encoding,
                                            const std::vector<std::string>& read_by_transforms,
                                            const std::vector<BlockField>& fields,
                                            const std::vector<ColumnSample>& samples,
                                            std::vector<LeftOutColumn> unread);

}  // namespace lockstep
