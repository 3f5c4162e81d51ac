// hash: categories as rows of a table by a hash of their text: nothing is fitted, new categories are welcome,
// and some share a row.
#include "data/transform/column_transform.h"
#include "data/transform/column_values.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lockstep {

int32_t hashed_id(std::string_view bytes, uint64_t seed, int64_t buckets) {
  const uint64_t hash = XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
  return static_cast<int32_t>(1 + (((hash >> 32) * static_cast<uint64_t>(buckets - 1)) >> 32));
}

namespace {

class Hash : public ColumnTransform {
 public:
  explicit Hash(const TransformOptions& options) : Hash(TransformSettings(options)) {}

 protected:
  BlockField made(size_t, const BlockField&) const override {
    return {.name = {}, .type = ValueType::kI32, .ids = buckets_};
  }

  void make(size_t, const BlockColumn& from, ColumnBlock& block, BlockColumn& to) const override {
    const auto records = static_cast<size_t>(block.records);
    std::vector<int32_t> ids(records);
    for_each_category(from, records, [&](size_t r, std::string_view text) {
      if (text.empty())
        mark_missing(to, r, records);
      else
        ids[r] = hashed_id(text, seed_, buckets_);
    });
    to.values = std::move(ids);
  }

 private:
  explicit Hash(TransformSettings settings)
      : ColumnTransform(settings, 1, Wanted::kText),
        buckets_(settings.whole("buckets", 2, 2147483647)),
        seed_(static_cast<uint64_t>(settings.whole("seed", 0, int64_t{1} << 53, 0))) {
    settings.finish();
  }

  int64_t buckets_;
  uint64_t seed_;
};

constexpr TransformSetting kSettings[] = {
    kColumnsSetting,
    kAsSetting,
    {"buckets", "rows of the table, from 2; at most `model.rows`", ""},
    {"seed", "gives another hash, under which others share a row", "0"},
};

}  // namespace

constinit const TransformEntry kHashTransform{
    "hash",
    "Categories numbered by a hash of their text (XXH3, version 1): nothing is fitted, and some share a "
    "number. 0 is "
    "for missing ones. Numbers are taken by their shortest text.",
    "{name: hash, columns: [merchant], buckets: 5000, seed: 1}", kSettings,
    [](const TransformOptions& options) -> std::unique_ptr<Transform> {
      return std::make_unique<Hash>(options);
    }};

}  // namespace lockstep
