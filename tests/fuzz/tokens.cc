#include "fuzz/tokens.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "data/reading/mapped_source.h"
#include "data/shards/shard_set.h"
#include "data/source/source.h"
#include "data/tokens/tokens_format.h"

namespace lockstep::testing {
namespace {

constexpr int64_t kVocab = 1000;

// A text as a file in memory: what is mapped of it must lie in it.
class MappedText : public ByteSource {
 public:
  explicit MappedText(std::string_view text) : ByteSource("corpus"), text_(text.begin(), text.end()) {}

  int64_t size() const override { return static_cast<int64_t>(text_.size()); }
  void read(int64_t offset, std::span<char> out) const override {
    LOCKSTEP_CHECK(offset >= 0 && static_cast<int64_t>(out.size()) <= size() - offset, "bytes from {}",
                   offset);
    std::copy_n(text_.begin() + offset, out.size(), out.begin());
  }
  bool mappable() const override { return true; }
  Mapped mapped(int64_t offset, int64_t bytes) const override {
    LOCKSTEP_CHECK(offset >= 0 && bytes >= 0 && bytes <= size() - offset, "bytes from {}", offset);
    return {reinterpret_cast<const std::byte*>(text_.data()) + offset, this, offset};
  }
  void check_unchanged(int64_t) const override {}
  std::string stamp() const override { return std::to_string(size()) + " text"; }

 private:
  std::vector<char> text_;
};

// Rows as jobs read them, which for plain rows is straight from the mapped file: those that were decoded.
void check_rows(std::shared_ptr<const ShardSet> set, const ColumnBlock& decoded) {
  std::vector<Column> columns;
  for (const BlockField& field : set->fields()) columns.push_back({field.name, DType::kI32, {field.width}});
  const auto source = open_rows(std::move(set), columns, int64_t{1} << 20);
  std::vector<int64_t> records(static_cast<size_t>(source->size()));
  std::iota(records.begin(), records.end(), 0);
  Batch batch(columns, source->size());
  source->fill(records, batch);
  for (size_t c = 0; c < columns.size(); ++c)
    LOCKSTEP_CHECK(std::ranges::equal(batch.values<int32_t>(c), decoded.columns[c].as<int32_t>()),
                   "column {} differs from what is decoded", columns[c].name);
}

ColumnBlock check_records(const ShardSet& set) {
  BlockScratch all, one;
  StageCounters counters;
  const int64_t records = set.manifest().records();
  set.load(0, records, all, counters);
  check_block(all.block);
  for (const int32_t token : all.block.column("tokens").as<int32_t>())
    LOCKSTEP_CHECK(token >= 0 && token < kVocab, "token {}", token);
  for (const int32_t target : all.block.column("targets").as<int32_t>())
    LOCKSTEP_CHECK(target == kIgnoredLabel || (target >= 0 && target < kVocab), "target {}", target);
  for (int64_t r = 0; r < records; r += 1 + records / 8) {
    set.load(r, 1, one, counters);
    for (size_t c = 0; c < one.block.columns.size(); ++c) {
      const auto& whole = all.block.columns[c].as<int32_t>();
      const auto& part = one.block.columns[c].as<int32_t>();
      const auto at = whole.begin() + r * static_cast<int64_t>(part.size());
      LOCKSTEP_CHECK(std::equal(part.begin(), part.end(), at), "record {} differs when it is read alone", r);
    }
    LOCKSTEP_CHECK(!set.describe(r).empty(), "record {} lies nowhere", r);
  }
  return std::move(all.block);
}

}  // namespace

bool check_tokens(std::string_view bytes) {
  if (bytes.empty()) return false;
  FormatOptions options;
  options.settings = {{"seq", "4"},
                      {"vocab", std::to_string(kVocab)},
                      {"pack", (bytes[0] & 1) != 0 ? "best_fit" : "split"},
                      {"documents", (bytes[0] & 2) != 0 ? "separate" : "joined"}};
  if ((bytes[0] & 4) != 0) options.bad = BadRecords::kSkip;
  if ((bytes[0] & 8) != 0) options.settings["marked"] = "true";
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(std::make_unique<MappedText>(bytes.substr(1)));
  try {
    const auto set = std::make_shared<ShardSet>(make_tokens_format(options), std::move(shards),
                                                ShardSetOptions{.most_bad = 1});
    check_rows(set, check_records(*set));
  } catch (const UserError&) {
    return false;
  }
  return true;
}

}  // namespace lockstep::testing
