#include "fuzz/record_formats.h"

#include <optional>

#include "base/error.h"
#include "data/bytes/byte_source.h"
#include "data/bytes/tfrecord_frame.h"
#include "data/shards/formats.h"
#include "data/shards/shard_set.h"
#include "fuzz/repair.h"

namespace lockstep::testing {
namespace {

constexpr int64_t kMostContent = 16 << 20;  // bytes, to keep an input cheap

const std::vector<BlockField> kColumns{{"a", ValueType::kF64, 1},   {"b", ValueType::kI64, 1},
                                       {"c", ValueType::kBytes, 1}, {"d", ValueType::kF32, 2},
                                       {"e", ValueType::kI32, -1},  {"f", ValueType::kBytes, -1},
                                       {"g", ValueType::kU8, 1}};

const std::vector<BlockField> kCsvColumns{
    {"a", ValueType::kF64, 1}, {"b", ValueType::kI64, 1}, {"c", ValueType::kBytes, 1}};

std::optional<ShardSet> opened(std::string_view format, std::string_view bytes,
                               const FormatOptions& options) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(open_text("t", std::string(bytes)));
  try {
    return ShardSet(make_format(format, options), std::move(shards), {.most_bad = 1});
  } catch (const UserError&) {
    return {};
  }
}

void decode(const ShardSet& set, int64_t first, int64_t count, BlockScratch& scratch) {
  StageCounters counters;
  set.load(first, count, scratch, counters);
  check_block(scratch.block);
}

// Every record decodes, and those of the second half alone are those of the whole.
void check_records(const ShardSet& set) {
  const int64_t records = set.manifest().records();
  BlockScratch whole, part;
  try {
    decode(set, 0, records, whole);
    decode(set, records / 2, records - records / 2, part);
  } catch (const UserError& error) {
    throw InternalError("a record that the index has as good is refused: {}", error.what());
  }
  for (size_t c = 0; c < whole.block.columns.size(); ++c) {
    const BlockColumn& all = whole.block.columns[c];
    const BlockColumn& tail = part.block.columns[c];
    std::visit(
        [&](const auto& values) {
          const auto& last = std::get<std::decay_t<decltype(values)>>(tail.values);
          LOCKSTEP_CHECK(last.size() <= values.size(), "column {} has more values in a part", all.name);
          const size_t before = values.size() - last.size();
          for (size_t i = 0; i < last.size(); ++i)
            LOCKSTEP_CHECK(last[i] == values[before + i] || last[i] != last[i], "column {} differs",
                           all.name);
        },
        all.values);
  }
  for (int64_t r = 0; r < records; ++r) LOCKSTEP_CHECK(!set.describe(r).empty(), "record {}", r);
}

using Settings = std::map<std::string, std::string>;

bool check_shard(std::string_view format, std::string_view bytes,
                 const std::vector<BlockField>& wanted = kColumns,
                 const Settings& settings = {{"longest_record", "2000"}},
                 const std::shared_ptr<const MissingTexts>& missing = {}) {
  for (const auto& columns : {wanted, std::vector<BlockField>()}) {
    const auto set = opened(format, bytes, {columns, settings, BadRecords::kSkip, missing});
    if (set) check_records(*set);
  }
  const auto set = opened(format, bytes, {wanted, settings, BadRecords::kStop, missing});
  if (!set) return false;
  try {
    BlockScratch scratch;
    decode(*set, 0, set->manifest().records(), scratch);
  } catch (const UserError&) {
    return false;
  }
  check_records(*set);
  return true;
}

}  // namespace

bool check_csv(std::string_view bytes) {
  const auto missing = std::make_shared<const MissingTexts>(std::vector<std::string>{"x", "-1", "NA "});
  for (const char* separator : {";", "\t", "|"})
    check_shard("csv", bytes, kCsvColumns, {{"separator", separator}}, missing);
  return check_shard("csv", bytes, kCsvColumns, {});
}

bool check_jsonl(std::string_view bytes) { return check_shard("jsonl", bytes); }

bool check_tfrecord(std::string_view bytes) {
  if (check_shard("tfrecord", bytes)) return true;
  check_shard("tfrecord", repaired_tfrecord(bytes));
  return false;
}

bool check_example(std::string_view bytes) {
  std::string file;
  append_tfrecord("", file);
  append_tfrecord(bytes, file);
  append_tfrecord("", file);
  return check_shard("tfrecord", file);
}

namespace {

bool decompresses(std::string_view bytes) {
  std::unique_ptr<ByteSource> source;
  try {
    source = decompressed(open_text("t", std::string(bytes)));
  } catch (const UserError&) {
    return false;
  }
  if (source->size() > kMostContent) return true;
  std::string whole(static_cast<size_t>(source->size()), '\0');
  try {
    source->read(0, whole);
    for (const int64_t divisor : {2, 3, 7}) {
      const int64_t offset = source->size() / divisor;
      std::string part(static_cast<size_t>(std::min<int64_t>(source->size() - offset, 1000)), '\0');
      source->read(offset, part);
      LOCKSTEP_CHECK(whole.substr(static_cast<size_t>(offset), part.size()) == part, "the content differs");
    }
  } catch (const UserError& error) {
    throw InternalError("content that was found is refused: {}", error.what());
  }
  return true;
}

}  // namespace

bool check_compressed(std::string_view bytes) {
  if (decompresses(bytes)) return true;
  decompresses(repaired_gzip(bytes));
  return false;
}

}  // namespace lockstep::testing
