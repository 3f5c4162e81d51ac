// Columns as transforms read and write them, whatever type they were decoded in.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/format/column_block.h"
#include "data/format/missing_texts.h"
#include "data/format/value_text.h"
#include "data/transform/table_encoding.h"

namespace lockstep {

// f64, with NaN for what is missing. Throws UserError for text.
void numbers_of(const BlockColumn& column, std::vector<double>& out);

// The same without a copy where they lie there like that; `room` takes them otherwise.
std::span<const double> numbers_in(const BlockColumn& column, std::vector<double>& room);

// Calls take(record, text); the text of what is missing is empty. Numbers of files have their category_text,
// those that a transform made their shortest one: 7 for an hour of time_features, whatever the file.
template <typename Take>
void for_each_text(const BlockColumn& column, size_t records, const Take& take) {
  std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        for (size_t r = 0; r < records; ++r) {
          if (column.is_missing(r)) {
            take(r, std::string_view());
          } else if constexpr (std::is_same_v<T, std::string_view>) {
            take(r, values[r]);
          } else {
            const std::string text =
                column.computed ? fmt::format("{}", values[r]) : category_text(values[r]);
            take(r, std::string_view(text));
          }
        }
      },
      column.values);
}

// The same for categories: what means a missing value (NA, null, ...) has no text either.
template <typename Take>
void for_each_category(const BlockColumn& column, size_t records, const Take& take) {
  const MissingTexts& missing = missing_texts(column);
  for_each_text(column, records, [&](size_t r, std::string_view text) {
    take(r, missing.has(text) ? std::string_view() : text);
  });
}

// Throws BadValue for the first number of a block that is infinite or beyond kLargestNumber, which text
// cannot hold and typed columns can.
void require_finite(const ColumnBlock& block);

// Marks a record, of that many, as missing.
void mark_missing(BlockColumn& column, size_t record, size_t records);

// Adds, or takes the place of the one that has its name.
void put_field(std::vector<BlockField>& fields, BlockField field);
void put_column(ColumnBlock& block, BlockColumn column);

// The hash of categories that `hash` and `cross` share: XXH3 with a seed, taken to [1, buckets); 0 is for
// what is missing. Frozen by golden values in a test: another one would be another version of both.
int32_t hashed_id(std::string_view bytes, uint64_t seed, int64_t buckets);

}  // namespace lockstep
