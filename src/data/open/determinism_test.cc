// The order never changes: an epoch has the same records, bit by bit, at the same positions, for any number
// of readers and ranks, any batch and any memory, and from wherever it is resumed. For every format that the
// generated transactions can be written in and that tables are read from.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/test_folder.h"
#include "data/cache/row_cache_source.h"
#include "data/format/format.h"
#include "data/shards/formats.h"
#include "data/synthetic/fraud_shards.h"
#include "data/synthetic/fraud_writer.h"
#include "data/table/table.h"
#include "data/testing/test_epochs.h"

namespace lockstep {
namespace {

class Tables : public EpochTest {
 protected:
  explicit Tables(int64_t rows) : rows_(rows) {}

  void SetUp() override {
    FraudOptions fraud;
    fraud.rows = rows_;
    fraud.eval_rows = 1000;
    fraud.format = GetParam();
    fraud.shards = 3;
    write_fraud(fraud, folder_.path("tx"));
  }

  std::shared_ptr<const FileSource> open_files(int64_t memory) const {
    TableOptions options;
    options.format = GetParam();
    options.encoding.label = "is_fraud";
    options.encoding.ignore = {"card"};
    options.encoding.buckets = 1000;
    options.budget = memory / 4 * 3;
    return open_table(options, {folder_.path("tx/train-*." + GetParam())}).source;
  }

  std::shared_ptr<const Source> open(int64_t memory) const override { return open_files(memory); }

 private:
  int64_t rows_;
  TestFolder folder_;
};

std::vector<std::string> written_and_read() {
  std::vector<std::string> both;
  const std::vector<std::string_view> read = format_names();
  for (const std::string_view format : fraud_formats())
    if (std::find(read.begin(), read.end(), format) != read.end()) both.emplace_back(format);
  return both;
}

// Blocks of Parquet are as long as pages, so that windows have many more rows.
constexpr int64_t kParquetRows = 540000, kParquetMemory = 192 * kMiB;

class Determinism : public Tables {
 protected:
  Determinism() : Tables(21000) {}
};
// More rows than the small memory holds.
class DeterminismLong : public Tables {
 protected:
  DeterminismLong() : Tables(GetParam() == "parquet" ? 2 * kParquetRows : 251000) {}
  int64_t small_memory() const override {
    return GetParam() == "parquet" ? kParquetMemory : Tables::small_memory();
  }
};
class DeterminismOfParquet : public Tables {
 protected:
  DeterminismOfParquet() : Tables(kParquetRows) {}
  int64_t small_memory() const override { return kParquetMemory; }
};

// Of kept rows, which are there from the second reading on.
class DeterminismOfKeptRows : public Tables {
 protected:
  DeterminismOfKeptRows() : Tables(21000) {}
  std::shared_ptr<const Source> open(int64_t memory) const override {
    return keep_rows(open_files(memory), {.threads = 2});
  }
};

TEST_P(DeterminismOfKeptRows, AnEpochIsTheSameHoweverItIsRead) { expect_same_in_a_sample(); }
TEST_P(Determinism, AnEpochIsTheSameHoweverItIsRead) { expect_same_in_a_sample(); }
TEST_P(DeterminismOfParquet, AnEpochIsTheSameHoweverItIsRead) {
  expect_windows(1);
  expect_same_in_a_sample();
}
TEST_P(DeterminismLong, AnEpochIsTheSameHoweverItIsRead) {
  expect_windows(2);
  expect_same_in_all_ways();
}
TEST_P(DeterminismLong, AnEpochIsResumedAnywhereOnOtherRanksWithOtherBatches) { expect_same_when_resumed(); }

INSTANTIATE_TEST_SUITE_P(Formats, DeterminismOfKeptRows, testing::ValuesIn(written_and_read()), kFormatName);
INSTANTIATE_TEST_SUITE_P(Formats, Determinism, testing::ValuesIn(written_and_read()), kFormatName);
INSTANTIATE_TEST_SUITE_P(Formats, DeterminismOfParquet, testing::Values("parquet"), kFormatName);
INSTANTIATE_TEST_SUITE_P(Formats, DeterminismLong, testing::ValuesIn(written_and_read()), kFormatName);

}  // namespace
}  // namespace lockstep
