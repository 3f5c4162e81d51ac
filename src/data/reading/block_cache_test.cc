// Blocks in memory: loaded once where they fit, and always within the limit.
#include "data/reading/block_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "data/testing/test_row_blocks.h"

namespace lockstep {
namespace {

constexpr int64_t kBlocks = 128;
constexpr uint32_t kRecords = kTestBlockRecords;

const int64_t kBlockBytes = test_row_block(0)->bytes();
constexpr int64_t kLoading = 20 << 10;

struct Reader {
  BlockCache cache;
  int64_t loads = 0;

  Reader(int64_t limit, bool keep_all = false)
      : cache({.memory = std::make_shared<ByteBudget>(limit), .loading = kLoading, .keep_all = keep_all}) {}

  int32_t read(int64_t key, uint32_t record) {
    const auto block = cache.get(key, {&record, 1}, [&](int64_t wanted) {
      ++loads;
      return test_row_block(wanted);
    });
    int32_t value = 0;
    std::memcpy(&value, block->row(record), sizeof value);
    return value;
  }
  // One record of every block at a time, as the order of a window does.
  void read_epoch() {
    for (uint32_t r = 0; r < kRecords; ++r)
      for (int64_t b = 0; b < kBlocks; ++b) ASSERT_EQ(read(b, r), b * kRecords + r);
  }
};

TEST(BlockCache, LoadsEveryBlockOnceWhereTheyFit) {
  const int64_t blocks = kBlocks * kBlockBytes + kLoading;
  Reader reader(blocks + blocks / 100);  // a little is left to others
  reader.read_epoch();
  EXPECT_EQ(reader.loads, kBlocks);
  reader.read_epoch();
  EXPECT_EQ(reader.loads, 2 * kBlocks);  // used up blocks are let go
}

TEST(BlockCache, KeepsAllWhereThereIsRoom) {
  Reader reader(kBlocks * kBlockBytes + kLoading, true);
  reader.read_epoch();
  reader.read_epoch();
  EXPECT_EQ(reader.loads, kBlocks);
}

TEST(BlockCache, StaysUnderTheLimitAlsoWhereOthersTakeFromIt) {
  const auto memory = std::make_shared<ByteBudget>(kBlocks * kBlockBytes / 2);
  BlockCache cache({.memory = memory, .loading = kLoading});
  for (uint32_t r = 0; r < kRecords; ++r) {
    for (int64_t b = 0; b < kBlocks; ++b) {
      const auto block = cache.get(b, {&r, 1}, [&](int64_t key) { return test_row_block(key); });
      EXPECT_EQ(block->records(), kRecords);
    }
    memory->take(kBlockBytes / 8);
  }
  EXPECT_LE(memory->peak(), memory->limit());
  EXPECT_GT(memory->peak(), memory->limit() * 3 / 4);
}

TEST(BlockCache, OneBlockCanAlwaysBeLoaded) {
  Reader reader(kLoading / 2);
  EXPECT_EQ(reader.read(3, 5), 3 * static_cast<int32_t>(kRecords) + 5);
  EXPECT_EQ(reader.read(4, 6), 4 * static_cast<int32_t>(kRecords) + 6);
}

TEST(BlockCache, AFaultGoesToWhoAskedForTheBlock) {
  Reader reader(1 << 20);
  const uint32_t record = 1;
  const auto fails = [](int64_t) -> std::unique_ptr<RowBlock> { throw std::runtime_error("no"); };
  EXPECT_THROW(reader.cache.get(7, {&record, 1}, fails), std::runtime_error);
  EXPECT_EQ(reader.read(7, 1), 7 * static_cast<int32_t>(kRecords) + 1);
}

}  // namespace
}  // namespace lockstep
