#include "data/format/record_settings.h"

#include <algorithm>

#include "base/error.h"
#include "data/format/csv_record.h"
#include "data/format/text_lines.h"

namespace lockstep {

int64_t longest_record(std::string_view format, const FormatOptions& options) {
  constexpr int64_t kShortest = 16, kLongest = int64_t{1} << 30;
  int64_t longest = TextLines::kLongestRecord;
  for (const auto& [key, value] : options.settings) {
    if (key != "longest_record")
      throw UserError("{} has no setting '{}'; it has longest_record", format, key);
    const auto bytes = integer_of(value);
    if (!bytes || *bytes < kShortest || *bytes > kLongest)
      throw UserError("longest_record is '{}'; use a number of bytes from {} to {}", value, kShortest,
                      kLongest);
    longest = *bytes;
  }
  return longest;
}

std::vector<BlockField> without_repeats(const std::vector<BlockField>& columns) {
  std::vector<BlockField> once;
  for (const BlockField& column : columns)
    if (std::none_of(once.begin(), once.end(), [&](const BlockField& c) { return c.name == column.name; }))
      once.push_back(column);
  return once;
}

}  // namespace lockstep
