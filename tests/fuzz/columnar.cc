#include "fuzz/columnar.h"

#include <algorithm>

#include "base/error.h"
#include "data/shards/shard_set.h"
#include "data/testing/test_blocks.h"

namespace lockstep::testing {
namespace {

constexpr int64_t kMostRecords = 5000;  // to print

bool read_all(const MakeFormat& make, std::string_view bytes, BadRecords bad) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(open_text("file", std::string(bytes)));
  try {
    const ShardSet set(make({{}, {}, bad}), std::move(shards), {.most_bad = 1});
    const int64_t records = std::min(set.manifest().records(), kMostRecords);
    const std::string whole = printed(set, 0, records);
    const int64_t half = records / 2;
    if (half > 0)
      LOCKSTEP_CHECK(printed(set, 0, half) + printed(set, half, records - half) == whole,
                     "parts of {} records", records);
    LOCKSTEP_CHECK(set.describe(records - 1).starts_with("file"), "{}", set.describe(records - 1));
    return set.bad_records().empty();
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

bool check_columnar(const MakeFormat& make, std::string_view bytes) {
  const bool whole = read_all(make, bytes, BadRecords::kStop);
  const bool whole_when_skipping = read_all(make, bytes, BadRecords::kSkip);
  LOCKSTEP_CHECK(!whole || whole_when_skipping, "what can be read is left out");
  return whole;
}

}  // namespace lockstep::testing
