#include "fuzz/tokens.h"

#include "base/error.h"
#include "data/format/tokens_format.h"
#include "data/pipeline/shard_set.h"
#include "data/source.h"

namespace lockstep::testing {
namespace {

constexpr int64_t kVocab = 1000;

void check_records(const ShardSet& set) {
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
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(open_text("corpus", std::string(bytes.substr(1))));
  try {
    check_records(ShardSet(make_tokens_format(options), std::move(shards), {.most_bad = 1}));
  } catch (const UserError&) {
    return false;
  }
  return true;
}

}  // namespace lockstep::testing
