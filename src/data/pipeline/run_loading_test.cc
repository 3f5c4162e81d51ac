// Blocks that are used at the same time are loaded at once, and nothing else comes of it.
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <random>

#include "base/test_folder.h"
#include "data/format/table_writer.h"
#include "data/pipeline/test_tables.h"

namespace lockstep {
namespace {

// Eight pages of numbers that do not repeat, so many in a row that a window of the order has 4 blocks.
constexpr int64_t kRows = 8 * 8192;
constexpr size_t kColumns = 32;
constexpr int64_t kMemory = int64_t{256} << 20;

class RunLoading : public testing::Test {
 protected:
  RunLoading() {
    ColumnBlock block;
    block.records = kRows;
    std::minstd_rand draw(5);
    for (size_t c = 0; c < kColumns; ++c) {
      BlockColumn column = make_column({fmt::format("x{}", c), ValueType::kF32, 1});
      for (int64_t r = 0; r < kRows; ++r) column.as<float>().push_back(static_cast<float>(draw()));
      block.columns.push_back(std::move(column));
    }
    BlockColumn label = make_column({"label", ValueType::kI32, 1});
    for (int64_t r = 0; r < kRows; ++r) label.as<int32_t>().push_back(static_cast<int32_t>(r % 2));
    block.columns.push_back(std::move(label));
    const auto writer = make_table_writer("parquet", block.fields());
    std::string bytes;
    writer->append(block, bytes);
    writer->finish(bytes);
    std::ofstream(folder_.path("wide.parquet"), std::ios::binary) << bytes;
  }

  std::shared_ptr<const FileSource> open(int64_t lanes, int64_t memory = kMemory) const {
    TableOptions options;
    options.format = "parquet";
    options.encoding.label = "label";
    options.lanes = lanes;
    options.budget = memory;
    return open_table(options, {folder_.path("wide.parquet")}).source;
  }

  // How often something is loaded while all records are read in their order.
  static int64_t loads_of(const FileSource& source) {
    std::vector<int64_t> records(8192);
    Batch batch(source.columns(), static_cast<int64_t>(records.size()));
    for (int64_t first = 0; first < kRows; first += batch.records()) {
      std::iota(records.begin(), records.end(), first);
      source.fill(records, batch);
    }
    return source.stages()->read().blocks;
  }

 private:
  TestFolder folder_;
};

TEST_F(RunLoading, GivesTheSameRows) {
  const auto alone = open(1);
  const auto together = open(16);
  EXPECT_EQ(mixed_rows(*together), mixed_rows(*alone));
  EXPECT_EQ(together->fingerprint(), alone->fingerprint());
}

TEST_F(RunLoading, LoadsAsManyBlocksOfARunAsLanesAreReadHere) {
  EXPECT_EQ(loads_of(*open(1)), 8);
  EXPECT_EQ(loads_of(*open(2)), 4);
  EXPECT_EQ(loads_of(*open(4)), 2);
  EXPECT_EQ(loads_of(*open(16)), 2);
}

TEST_F(RunLoading, LeavesTheBlocksOfTheOrderAsTheyAre) {
  EXPECT_EQ(open(1)->block_records(), 8192);
  EXPECT_EQ(open(16)->block_records(), 8192);
}

TEST_F(RunLoading, LoadsSingleBlocksWhereMemoryIsShort) {
  EXPECT_EQ(loads_of(*open(16, int64_t{40} << 20)), 8);
}

}  // namespace
}  // namespace lockstep
