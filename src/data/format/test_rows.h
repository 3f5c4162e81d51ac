// Rows of hashes, for tests of formats that decode rows straight: what such a row must be follows from the
// columns.
#pragma once
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "data/format/row_encoding.h"
#include "data/pipeline/shard_set.h"

namespace lockstep {

// A place for every column of single values, and a second one for every third of these.
class HashedRows : public RowEncoding {
 public:
  explicit HashedRows(const std::vector<BlockField>& fields, std::string refused = {})
      : refused_(std::move(refused)) {
    for (const BlockField& field : fields)
      if (field.width == 1) names_.push_back(field.name);
    for (size_t i = 0, all = names_.size(); i < all; i += 3) names_.push_back(names_[i]);
  }

  std::vector<std::string> place_columns() const override { return names_; }
  bool encode(size_t place, const BlockColumn& values, std::span<std::byte> out) const override {
    for (size_t r = 0; r < out.size() / kPlaceBytes; ++r) {
      const std::string text =
          values.is_missing(r)
              ? "missing"
              : std::visit([&](const auto& held) { return fmt::format("{}", held[r]); }, values.values);
      if (!refused_.empty() && text == refused_) return false;
      const auto hash = static_cast<uint32_t>(std::hash<std::string>()(text) * (place + 1));
      std::memcpy(out.data() + r * kPlaceBytes, &hash, kPlaceBytes);
    }
    return true;
  }

  // What rows of these records must be.
  std::vector<std::byte> expected(const ColumnBlock& block, std::span<const uint32_t> only = {}) const {
    const auto records = static_cast<size_t>(block.records);
    const size_t row_bytes = names_.size() * kPlaceBytes;
    std::vector<std::byte> rows, column(records * kPlaceBytes), all(records * row_bytes);
    for (size_t place = 0; place < names_.size(); ++place) {
      encode(place, block.column(names_[place]), column);
      for (size_t r = 0; r < records; ++r)
        std::memcpy(all.data() + r * row_bytes + place * kPlaceBytes, column.data() + r * kPlaceBytes,
                    kPlaceBytes);
    }
    if (only.empty()) return all;
    for (const uint32_t r : only)
      rows.insert(rows.end(), all.data() + r * row_bytes, all.data() + (r + 1) * row_bytes);
    return rows;
  }

 private:
  std::vector<std::string> names_;
  std::string refused_;
};

// Whether rows that are loaded as such are those of the columns; nothing where they cannot be.
inline std::optional<bool> rows_are_those_of_columns(const ShardSet& set, const HashedRows& encoding,
                                                     int64_t first, int64_t count,
                                                     std::span<const uint32_t> only = {}) {
  BlockScratch scratch;
  StageCounters counters;
  set.load(first, count, scratch, counters);
  const std::vector<std::byte> expected = encoding.expected(scratch.block, only);
  std::vector<std::byte> rows(expected.size());
  if (!set.load_rows(encoding, first, count, only, rows.data(), counters)) return {};
  return rows == expected;
}

}  // namespace lockstep
