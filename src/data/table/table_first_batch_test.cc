// The first batch from Parquet holds what the same table gives in CSV, also where a row group has values that
// no row of the batch has.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_folder.h"
#include "data/table/table.h"
#include "data/testing/test_blocks.h"
#include "data/testing/test_tables.h"

namespace lockstep {
namespace {

constexpr int64_t kRecords = 150'000, kOther = 30'000;

// Three row groups. Small numbers that hardly repeat make dictionaries that have to be unpacked.
ColumnBlock table(bool with_other_kind) {
  ColumnBlock block;
  block.reset({{"count", ValueType::kI64, 1},
               {"amount", ValueType::kF32, 1},
               {"kind", ValueType::kBytes, 1},
               {"label", ValueType::kBytes, 1}});
  block.records = kRecords;
  for (int64_t r = 0; r < kRecords; ++r) {
    block.columns[0].as<int64_t>().push_back(r * 7919 % 20'011);
    block.columns[1].as<float>().push_back(static_cast<float>(r * 31 % 977) / 8);
    block.columns[2].as<std::string_view>().push_back(
        with_other_kind && r == kOther ? "phone" : (r % 3 == 0 ? "shop" : "web"));
    block.columns[3].as<std::string_view>().push_back(r % 5 == 0 ? "1" : "0");
  }
  return block;
}

Table open(const TestFolder& folder, const std::string& format, const ColumnBlock& block) {
  write_file(folder.path("t." + format), written_file(format, block, Codec::kSnappy));
  TableOptions options;
  options.format = format;
  options.encoding.label = "label";
  options.encoding.buckets = 100;
  return open_table(options, {folder.path("t." + format)});
}

// Some of the records from all over the table, but for those near the one with a value of its own.
std::string batch_of(const Source& source, int64_t first) {
  constexpr int64_t kApart = 1009, kNear = 20'000;
  std::vector<int64_t> records;
  for (int64_t r = first; r < kRecords; r += kApart)
    if (r < kOther - kNear || r > kOther + kNear) records.push_back(r);
  return batch_bytes(source, records);
}

TEST(TableFirstBatch, HoldsWhatCsvGives) {
  const TestFolder folder;
  const Table csv = open(folder, "csv", table(false)), parquet = open(folder, "parquet", table(false));
  EXPECT_EQ(batch_of(*parquet.source, 5), batch_of(*csv.source, 5));
  for (const int64_t first : {900, 6})
    EXPECT_EQ(batch_of(*parquet.source, first), batch_of(*csv.source, first));
}

TEST(TableFirstBatch, TakesNoHarmFromValuesOfOtherRows) {
  const TestFolder folder;
  const Table csv = open(folder, "csv", table(false)), parquet = open(folder, "parquet", table(true));
  EXPECT_EQ(batch_of(*parquet.source, 5), batch_of(*csv.source, 5));
}

}  // namespace
}  // namespace lockstep
