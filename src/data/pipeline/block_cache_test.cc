// Blocks in memory: loaded once where they fit, and where they do not, as rarely as what is expected allows.
#include "data/pipeline/block_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "data/pipeline/test_row_blocks.h"

namespace lockstep {
namespace {

constexpr int64_t kBlocks = 128;
constexpr uint32_t kRecords = kTestBlockRecords;

const int64_t kBlockBytes = test_row_block(0)->bytes();
constexpr int64_t kLoading = 20 << 10;

struct Reader {
  BlockCache cache;
  int64_t loads = 0;

  Reader(int64_t limit, int64_t keep_all = 0)
      : cache({.memory = std::make_shared<ByteBudget>(limit),
               .loading = kLoading,
               .keep_all = keep_all,
               .row_bytes = 256}) {}

  int32_t read(int64_t key, uint32_t record) {
    const auto block = cache.get(key, {&record, 1}, [&](std::span<const uint32_t> only) {
      ++loads;
      return test_row_block(key, only);
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
  // The same, telling so many records before.
  void read_epoch_telling(int64_t ahead) {
    const auto key_of = [](int64_t i) { return i % kBlocks; };
    const auto record_of = [](int64_t i) { return static_cast<uint32_t>(i / kBlocks); };
    int64_t told = 0;
    for (int64_t i = 0; i < kBlocks * kRecords; ++i) {
      for (; told < std::min(kBlocks * int64_t{kRecords}, i + ahead); ++told) {
        const uint32_t record = record_of(told);
        cache.expect(key_of(told), {&record, 1});
      }
      ASSERT_EQ(read(key_of(i), record_of(i)), i % kBlocks * kRecords + i / kBlocks);
    }
  }
};

TEST(BlockCache, RecordsReadApartAreUsed) {
  Reader reader(kBlocks * kBlockBytes + kLoading);
  const uint32_t first = 5;
  EXPECT_FALSE(reader.cache.read_apart(1, {&first, 1}, [] { return false; }));
  // A block is asked about once: the answer may take as long as planning to read it.
  int asked = 0;
  EXPECT_FALSE(reader.cache.read_apart(1, {&first, 1}, [&] { return ++asked > 0; }));
  EXPECT_EQ(asked, 0);
  EXPECT_TRUE(reader.cache.read_apart(0, {&first, 1}, [] { return true; }));
  // Only once: the next records come with the block, which is let go when these are used.
  EXPECT_FALSE(reader.cache.read_apart(0, {&first, 1}, [] { return true; }));
  for (uint32_t r = 0; r < kRecords; ++r) {
    if (r == first) continue;
    EXPECT_EQ(reader.read(0, r), r);
    EXPECT_EQ(reader.cache.holds(0), r + 1 < kRecords);
  }
  EXPECT_EQ(reader.loads, 1);
}

TEST(BlockCache, LoadsEveryBlockOnceWhereTheyFit) {
  const int64_t blocks = kBlocks * kBlockBytes + kLoading;
  Reader reader(blocks + blocks / 100);  // a little is left to others
  reader.read_epoch();
  EXPECT_EQ(reader.loads, kBlocks);
  EXPECT_EQ(reader.cache.looks_ahead(), 0);
  reader.read_epoch();
  EXPECT_EQ(reader.loads, 2 * kBlocks);  // used up blocks are let go
}

TEST(BlockCache, KeepsAllWhereThereIsRoom) {
  Reader reader(kBlocks * kBlockBytes + kLoading, kBlocks);
  reader.read_epoch();
  reader.read_epoch();
  EXPECT_EQ(reader.loads, kBlocks);
}

TEST(BlockCache, KeepsOnlyWhatIsExpectedWhereBlocksDoNotFit) {
  const int64_t limit = kBlocks * kBlockBytes / 2;
  Reader reader(limit);
  reader.read_epoch();
  const int64_t thrashing = reader.loads;
  EXPECT_GT(thrashing, 32 * kBlocks);
  const int64_t ahead = reader.cache.looks_ahead();
  EXPECT_GT(ahead, kBlocks * kRecords / 4);
  EXPECT_LT(ahead, kBlocks * kRecords / 2);
  reader.loads = 0;
  reader.read_epoch_telling(ahead);
  // At least every block once for each time that memory is filled with what it holds.
  EXPECT_GT(reader.loads, 2 * kBlocks);
  EXPECT_LT(reader.loads, 6 * kBlocks);
}

// Where reading begins, little is expected yet: all blocks are loaded for that, and soon again for all that
// is.
TEST(BlockCache, BlocksThatWereLoadedTogetherComeToBeLoadedOneAfterAnother) {
  constexpr int64_t kAll = kBlocks * kRecords, kEpochs = 3, kParts = 8;
  Reader reader(kBlocks * kBlockBytes / 4);
  reader.read_epoch();
  const int64_t ahead = reader.cache.looks_ahead();
  reader.cache.expect_nothing();
  std::vector<int64_t> loads(static_cast<size_t>(kEpochs * kAll / (ahead / kParts) + 1));
  int64_t told = 0;
  for (int64_t use = 0; use < kEpochs * kAll; ++use) {
    for (; told < std::min({kEpochs * kAll, use + ahead, 2 * use + kBlocks}); ++told) {
      const auto record = static_cast<uint32_t>(told / kBlocks % kRecords);
      reader.cache.expect(told % kBlocks, {&record, 1});
    }
    const int64_t before = reader.loads;
    reader.read(use % kBlocks, static_cast<uint32_t>(use / kBlocks % kRecords));
    loads[static_cast<size_t>(use / (ahead / kParts))] += reader.loads - before;
  }
  const auto late = loads.end() - 2 * kParts;
  EXPECT_LT(*std::max_element(late, loads.end()), kBlocks / 3);
  EXPECT_LT(std::accumulate(late, loads.end(), int64_t{0}), 3 * kBlocks);
}

// Others need memory now and then, for which some blocks go and come back: that is no reason to keep less of
// all.
TEST(BlockCache, SomeThatAreLoadedAgainNowAndThenAreNoShortage) {
  const int64_t taken = 7 * kBlockBytes;
  const auto memory = std::make_shared<ByteBudget>((kBlocks + 1) * kBlockBytes + 4 * kLoading);
  BlockCache cache({.memory = memory, .loading = kLoading, .row_bytes = 256});
  int64_t loads = 0, others = kBlocks;
  const auto read = [&](int64_t key, uint32_t record) {
    cache.get(key, {&record, 1}, [&](std::span<const uint32_t> only) {
      ++loads;
      return test_row_block(key, only);
    });
  };
  constexpr int64_t kEpochs = 40;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch)
    for (uint32_t r = 0; r < kRecords; ++r) {
      for (int64_t b = 0; b < kBlocks; ++b) read(b, r);
      if (r % 4 != 0) continue;
      memory->count(taken);
      read(others++, 0);
      memory->count(-taken);
    }
  EXPECT_GT(loads, kEpochs * (kBlocks + 8));
  EXPECT_LT(loads, kEpochs * kBlocks * 5);
  EXPECT_EQ(cache.looks_ahead(), 0);
}

TEST(BlockCache, StaysUnderTheLimitAlsoWhereOthersTakeFromIt) {
  const auto memory = std::make_shared<ByteBudget>(kBlocks * kBlockBytes / 2);
  BlockCache cache({.memory = memory, .loading = kLoading, .row_bytes = 256});
  for (uint32_t r = 0; r < kRecords; ++r) {
    for (int64_t b = 0; b < kBlocks; ++b) {
      const auto block =
          cache.get(b, {&r, 1}, [&](std::span<const uint32_t> only) { return test_row_block(b, only); });
      EXPECT_TRUE(block->holds(r));
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
  const auto fails = [](std::span<const uint32_t>) -> std::unique_ptr<RowBlock> {
    throw std::runtime_error("no");
  };
  EXPECT_THROW(reader.cache.get(7, {&record, 1}, fails), std::runtime_error);
  EXPECT_EQ(reader.read(7, 1), 7 * static_cast<int32_t>(kRecords) + 1);
}

}  // namespace
}  // namespace lockstep
