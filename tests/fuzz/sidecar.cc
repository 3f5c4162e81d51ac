#include "fuzz/sidecar.h"

#include "base/error.h"
#include "data/bytes/access_points.h"
#include "data/order/record_set.h"
#include "data/transform/transform.h"
#include "fuzz/repair.h"

namespace lockstep::testing {
namespace {

// Transforms with constants, of two columns each.
const TransformOptions kFitted[] = {
    {"normalise", {{"columns", {"a", "b"}}}},
    {"fill", {{"columns", {"a", "b"}}, {"method", {"mean"}}}},
    {"bucketise", {{"columns", {"a", "b"}}, {"quantiles", {"4"}}}},
    {"vocabulary", {{"columns", {"a", "b"}}, {"size", {"3"}}}},
};

void check_ids(const ColumnBlock& block, const std::vector<BlockField>& fields) {
  for (size_t c = 0; c < fields.size(); ++c)
    if (fields[c].ids > 0)
      for (const int32_t id : block.columns[c].as<int32_t>())
        LOCKSTEP_CHECK(id >= 0 && id < fields[c].ids, "{} of {}", id, fields[c].ids);
}

bool check_constants(const TransformOptions& options, std::string_view text) {
  const auto transform = make_transform(options);
  try {
    transform->set_fitted(text);
  } catch (const UserError&) {
    return false;
  }
  LOCKSTEP_CHECK(transform->fitted() == text, "constants are written otherwise than they were read");
  ColumnBlock block;
  block.reset(transform->reads());
  block.records = 4;
  for (BlockColumn& column : block.columns) {
    if (column.type() == ValueType::kBytes)
      column.as<std::string_view>() = {"", "DE", "x", "NA"};
    else
      column.as<double>() = {0, -1, 1e30, 2.5};
  }
  const std::vector<BlockField> fields = transform->output(block.fields());
  transform->apply({}, block);
  check_block(block);
  check_ids(block, fields);
  return true;
}

// gzip of "lockstep " 40 times.
constexpr std::string_view kFile(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\xc9\x4f\xce\x2e\x2e\x49\x2d\x50\xc8\x19\x65\xd0\x92\x01\x00"
    "\xa5\x22\x20\x17\x68\x01\x00\x00",
    34);
constexpr std::string_view kValid = "points\n";

bool check_points(std::string_view bytes) {
  const auto file = open_text("file.gz", std::string(kFile));
  const auto points = read_access_points(open_text("sidecar", std::string(bytes)), kValid,
                                         static_cast<int64_t>(kFile.size()));
  if (!points) return false;
  for (const int64_t divisor : {1, 2, 3})
    LOCKSTEP_CHECK(points->before(points->size / divisor) < points->points.size(), "{} points",
                   points->points.size());
  for (size_t i = 0; i < points->points.size() && i < 8; ++i) try {
      std::string content(100, '\0');
      open_gzip(*file, *points, i)->read(content);
      open_zstd(*file, *points, i)->read(content);
    } catch (const UserError&) {
      // A point at which nothing begins.
    }
  return true;
}

bool check_set(std::string_view bytes) {
  constexpr int64_t kRecords = 70;
  try {
    const RecordSet set = RecordSet::from_bytes(bytes, kRecords);
    LOCKSTEP_CHECK(set.size() <= kRecords, "{} of {} records", set.size(), kRecords);
    for (int64_t i = 0; i < set.size(); ++i)
      LOCKSTEP_CHECK(set[i] < kRecords && set.before(set[i]) == i, "record {} is {}", i, set[i]);
  } catch (const UserError&) {
    return false;
  }
  return true;
}

}  // namespace

bool check_sidecar(std::string_view bytes) {
  if (bytes.empty()) return false;
  const std::string_view rest = bytes.substr(1);
  switch (bytes[0]) {
    case 'n': return check_constants(kFitted[0], rest);
    case 'f': return check_constants(kFitted[1], rest);
    case 'b': return check_constants(kFitted[2], rest);
    case 'v': return check_constants(kFitted[3], rest);
    case 'p':
      if (check_points(rest)) return true;
      check_points(repaired_access_points(rest));
      return false;
    case 's': return check_set(rest);
    default: return false;
  }
}

}  // namespace lockstep::testing
