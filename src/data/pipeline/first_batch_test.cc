// The first batch of a stream, also after a seek, reads little of the blocks that its records lie in, and
// holds what it would hold otherwise; an epoch decodes hardly more.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "data/format/test_shards.h"
#include "data/pipeline/file_source.h"

namespace lockstep {
namespace {

constexpr int64_t kBlocks = 32, kBlock = 1024, kRecords = kBlocks * kBlock;

FileSource source_of_blocks(int64_t budget) {
  std::string text = "x,filler\n";
  for (int64_t r = 0; r < kRecords; ++r) text += fmt::format("{},{:a>48}\n", r, "");
  auto shards =
      std::make_shared<ShardSet>(shard_of("csv", "x.csv", text, {.columns = {{"x", ValueType::kI32, 1}}}));
  return {std::move(shards), {}, {.columns = {{"x", DType::kI32, {1}}}, .budget = budget, .block = kBlock}};
}

// The same record of every block.
void read_round(const FileSource& source, int64_t record) {
  std::vector<int64_t> records(kBlocks);
  for (int64_t b = 0; b < kBlocks; ++b) records[static_cast<size_t>(b)] = b * kBlock + record;
  Batch batch(source.columns(), kBlocks);
  source.fill(records, batch);
  for (int64_t b = 0; b < kBlocks; ++b) ASSERT_EQ(batch.record<int32_t>(0, b)[0], b * kBlock + record);
}

int64_t bytes_read(const FileSource& source) { return source.stages()->read().bytes; }

TEST(FirstBatch, ReadsGranulesThenWholeBlocks) {
  const FileSource source = source_of_blocks(64 << 20);
  const int64_t all = source.shards().manifest().bytes();
  read_round(source, 700);
  EXPECT_LE(bytes_read(source), all / 8);
  read_round(source, 3);
  EXPECT_GE(bytes_read(source), all);
  const int64_t after_two = bytes_read(source);
  for (int64_t record = 0; record < kBlock; ++record)
    if (record != 700 && record != 3) read_round(source, record);
  EXPECT_EQ(bytes_read(source), after_two);
}

TEST(FirstBatch, ReadsLittleAfterASeek) {
  const FileSource source = source_of_blocks(1 << 20);  // two blocks while they are loaded, not all
  for (int64_t record = 0; record < 3; ++record) read_round(source, record);
  const int64_t before = bytes_read(source);
  source.expect_nothing();
  read_round(source, 900);
  EXPECT_LE(bytes_read(source) - before, source.shards().manifest().bytes() / 8);
}

TEST(FirstBatch, WholeBlocksAreReadAtOnce) {
  const FileSource source = source_of_blocks(64 << 20);
  std::vector<int64_t> records(kRecords);
  std::iota(records.begin(), records.end(), 0);
  Batch batch(source.columns(), kRecords);
  source.fill(records, batch);
  EXPECT_EQ(source.stages()->read().blocks, kBlocks);
  EXPECT_EQ(source.stages()->read().decoded, kRecords);
}

}  // namespace
}  // namespace lockstep
