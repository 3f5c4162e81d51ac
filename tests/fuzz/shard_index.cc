#include "fuzz/shard_index.h"

#include "base/error.h"
#include "data/format/shard_index.h"
#include "fuzz/repair.h"

namespace lockstep::testing {
namespace {

void check_record(const ShardIndex& index, int64_t record) {
  const GranuleSpan span = span_of(index, record, 1);
  LOCKSTEP_CHECK(
      span.offset >= 0 && (span.bytes >= 0 || index.granule == 0) && span.first >= 0 && span.first <= record,
      "record {} lies in {} bytes at {}, from record {} on", record, span.bytes, span.offset, span.first);
  const int64_t granule = index.granule_of(record);
  LOCKSTEP_CHECK(granule < index.granules() && record < index.first_of(granule + 1), "record {}", record);
}

bool check(std::string_view bytes) {
  ShardIndex index;
  try {
    index = parse_index(bytes);
  } catch (const UserError&) {
    return false;
  }
  LOCKSTEP_CHECK(to_bytes(index) == bytes, "an index is written otherwise than it was read");
  for (const int64_t divisor : {1, 2, 3, 7})
    if (index.records > 0) check_record(index, (index.records - 1) / divisor);
  for (const BadRecord& bad : index.bad) LOCKSTEP_CHECK(index.is_bad(bad.offset), "offset {}", bad.offset);
  return true;
}

}  // namespace

bool check_shard_index(std::string_view bytes) {
  if (check(bytes)) return true;
  check(repaired_shard_index(bytes));
  return false;
}

}  // namespace lockstep::testing
