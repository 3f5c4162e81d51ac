// cross: several columns as one category, hashed: which country with which channel. A record in which one of
// them is missing has none.
#include <cstring>

#include "base/error.h"
#include "data/transform/column_values.h"
#include "data/transform/settings.h"

namespace lockstep {
namespace {

class Cross : public Transform {
 public:
  explicit Cross(const TransformOptions& options) {
    TransformSettings settings(options);
    text_ = settings.text(1);
    columns_ = settings.list("columns");
    as_ = settings.optional_word("as").value_or(fmt::format("{}", fmt::join(columns_, "_x_")));
    buckets_ = settings.whole("buckets", 2, 2147483647);
    seed_ = static_cast<uint64_t>(settings.whole("seed", 0, int64_t{1} << 53, 0));
    settings.finish();
    if (columns_.size() < 2)
      throw UserError("transform cross: columns has only '{}'; name at least two", columns_[0]);
  }

  std::string text() const override { return text_; }
  std::vector<BlockField> reads() const override {
    std::vector<BlockField> fields;
    for (const std::string& name : columns_) fields.push_back({name, ValueType::kBytes, 1});
    return fields;
  }
  std::vector<std::string> makes() const override { return {as_}; }

  std::vector<BlockField> output(const std::vector<BlockField>& input) const override {
    for (const std::string& name : columns_)
      if (input[index_of(input, name)].width != 1)
        throw UserError("transform cross: column '{}' holds several values in a record, not one", name);
    std::vector<BlockField> fields = input;
    put_field(fields, {.name = as_, .type = ValueType::kI32, .ids = buckets_});
    return fields;
  }

  void apply(const BlockPlace&, ColumnBlock& block) const override {
    const auto records = static_cast<size_t>(block.records);
    std::vector<std::string> joined(records);
    BlockColumn crossed{as_, 1, std::vector<int32_t>(records)};
    for (const std::string& name : columns_)
      for_each_category(block.column(name), records, [&](size_t r, std::string_view text) {
        if (text.empty()) mark_missing(crossed, r, records);
        // With its length, so that (ab, c) is not (a, bc).
        const auto size = static_cast<uint64_t>(text.size());
        char bytes[sizeof size];
        std::memcpy(bytes, &size, sizeof size);
        joined[r].append(bytes, sizeof size).append(text);
      });
    auto& ids = crossed.as<int32_t>();
    for (size_t r = 0; r < records; ++r)
      if (!crossed.is_missing(r)) ids[r] = hashed_id(joined[r], seed_, buckets_);
    put_column(block, std::move(crossed));
  }

 private:
  std::string text_, as_;
  std::vector<std::string> columns_;
  int64_t buckets_ = 0;
  uint64_t seed_ = 0;
};

constexpr TransformSetting kSettings[] = {
    {"columns", "two or more columns", ""},
    {"as", "the name of what is made", "theirs, joined by `_x_`"},
    {"buckets", "rows of the table, from 2; at most `model.rows`", ""},
    {"seed", "gives another hash, under which others share a row", "0"},
};

}  // namespace

constinit const TransformEntry kCrossTransform{
    "cross",
    "Several columns as one category, numbered by a hash of their texts together (XXH3, version 1). 0 where "
    "one of "
    "them is missing. Columns that `bucketise` or `vocabulary` made are crossed by their numbers.",
    "{name: cross, columns: [country, channel], buckets: 1000}", kSettings,
    [](const TransformOptions& options) -> std::unique_ptr<Transform> {
      return std::make_unique<Cross>(options);
    }};

}  // namespace lockstep
