// Blocks that are loaded before they are asked for: in the order of need, in memory that nobody needs, and
// with no effect but on how long it takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "data/reading/block_cache.h"
#include "data/testing/test_row_blocks.h"

namespace lockstep {
namespace {

constexpr uint32_t kRecords = kTestBlockRecords;
constexpr int64_t kBlocks = 100;

const int64_t kBlockBytes = test_row_block(0)->bytes();
constexpr int64_t kLoading = 20 << 10;

struct Reader {
  std::shared_ptr<ByteBudget> memory;
  BlockCache cache;
  std::vector<int64_t> asked, ahead;  // keys of what was loaded

  explicit Reader(int64_t blocks)
      : memory(std::make_shared<ByteBudget>(blocks * kBlockBytes + 4 * kLoading)),
        cache({.memory = memory, .loading = kLoading}) {}

  void tell(int64_t first, int64_t count, int64_t epoch = 0) {
    std::vector<BlockCache::Need> needs;
    for (int64_t key = first; key < first + count; ++key) needs.push_back({key, epoch});
    cache.will_need(needs);
  }
  bool load_ahead() {
    return cache.load_ahead([&](int64_t key) {
      ahead.push_back(key);
      return test_row_block(key);
    });
  }
  void load_all_ahead() {
    for (int i = 0; i < 10000 && load_ahead(); ++i) EXPECT_LE(memory->used(), memory->limit());
  }
  void read(int64_t key, uint32_t record) {
    const auto block = cache.get(key, {&record, 1}, [&](int64_t wanted) {
      asked.push_back(wanted);
      return test_row_block(wanted);
    });
    int32_t value = 0;
    std::memcpy(&value, block->row(record), sizeof value);
    EXPECT_EQ(value, key * kRecords + record);
  }
  void read_all(int64_t key) {
    for (uint32_t r = 0; r < kRecords; ++r) read(key, r);
  }
};

TEST(BlockCacheAhead, LoadsWhatIsNeededFirstIntoWhatIsFree) {
  Reader reader(40);
  EXPECT_TRUE(reader.cache.has_room_ahead());
  EXPECT_FALSE(reader.load_ahead());  // nothing was said
  reader.tell(0, kBlocks);
  EXPECT_FALSE(reader.cache.has_room_ahead());  // it knows enough
  reader.load_all_ahead();
  EXPECT_GT(reader.ahead.size(), 30);
  EXPECT_LT(reader.ahead.size(), kBlocks);
  for (size_t i = 0; i < reader.ahead.size(); ++i) EXPECT_EQ(reader.ahead[i], i);
  EXPECT_LE(reader.memory->peak(), reader.memory->limit());
  // Reading finds all blocks there, and each that is used up makes room for the next.
  for (int64_t key = 0; key < kBlocks; ++key) {
    EXPECT_TRUE(reader.cache.holds(key));
    reader.read_all(key);
    EXPECT_FALSE(reader.cache.holds(key));
    reader.load_all_ahead();
  }
  EXPECT_TRUE(reader.asked.empty());
  EXPECT_EQ(reader.ahead.size(), kBlocks);
  EXPECT_LE(reader.memory->peak(), reader.memory->limit());
}

TEST(BlockCacheAhead, TakesNoRoomFromBlocksInUse) {
  Reader reader(40);
  for (int64_t key = 0; key < 40; ++key) reader.read(key, 0);
  reader.tell(50, 10);
  EXPECT_FALSE(reader.load_ahead());
  for (int64_t key = 0; key < 40; ++key) EXPECT_TRUE(reader.cache.holds(key));
}

TEST(BlockCacheAhead, GivesWayToWhatIsAskedForTheLastOneFirstAndComesAgain) {
  Reader reader(40);
  reader.tell(0, 40);
  reader.load_all_ahead();
  const auto loaded = static_cast<int64_t>(reader.ahead.size());
  for (int64_t key = 100; key < 120; ++key) reader.read(key, 0);
  EXPECT_LE(reader.memory->peak(), reader.memory->limit());
  for (int64_t key = 100; key < 120; ++key) EXPECT_TRUE(reader.cache.holds(key));
  int64_t held = 0;
  while (reader.cache.holds(held)) ++held;
  EXPECT_GT(held, 10);
  EXPECT_LT(held, loaded);
  for (int64_t key = held; key < loaded; ++key) EXPECT_FALSE(reader.cache.holds(key)) << key;
  EXPECT_EQ(reader.asked.size(), 20);
  reader.ahead.clear();
  for (int64_t key = 100; key < 120; ++key)
    for (uint32_t r = 1; r < kRecords; ++r) reader.read(key, r);
  reader.load_all_ahead();
  ASSERT_FALSE(reader.ahead.empty());
  EXPECT_EQ(reader.ahead.front(), held);
}

TEST(BlockCacheAhead, GivesWayToOthersThatTakeFromTheBudget) {
  Reader reader(40);
  reader.tell(0, 40);
  reader.load_all_ahead();
  reader.memory->take(20 * kBlockBytes);
  EXPECT_LE(reader.memory->peak(), reader.memory->limit());
  EXPECT_TRUE(reader.cache.holds(0));
  reader.memory->give(20 * kBlockBytes);
}

TEST(BlockCacheAhead, WhatWasAskedForIsNotLoadedAgain) {
  Reader reader(40);
  reader.tell(0, 10);
  for (int64_t key = 0; key < 5; ++key) reader.read_all(key);
  reader.load_all_ahead();
  EXPECT_EQ(reader.ahead, (std::vector<int64_t>{5, 6, 7, 8, 9}));
}

// Blocks that reading began with are used up before their turn comes.
TEST(BlockCacheAhead, WhatIsUsedUpIsNotLoadedForTheSameEpoch) {
  Reader reader(40);
  for (int64_t key = 0; key < 5; ++key) reader.read(key, 0);
  reader.tell(0, 6);
  for (int64_t key = 0; key < 5; ++key)
    for (uint32_t r = 1; r < kRecords; ++r) reader.read(key, r);
  reader.load_all_ahead();
  EXPECT_EQ(reader.ahead, (std::vector<int64_t>{5}));
  reader.tell(0, 2, 1);
  reader.load_all_ahead();
  EXPECT_EQ(reader.ahead, (std::vector<int64_t>{5, 0, 1}));
}

TEST(BlockCacheAhead, ABlockThatWasAskedForBeforeItsTurnStaysForTheNextEpochToo) {
  Reader reader(40);
  reader.tell(0, 3);
  for (int64_t key = 0; key < 3; ++key) reader.read(key, 0);
  reader.tell(0, 3, 1);
  reader.load_all_ahead();
  for (int64_t key = 0; key < 3; ++key) {
    for (uint32_t r = 1; r < kRecords; ++r) reader.read(key, r);
    EXPECT_TRUE(reader.cache.holds(key));
    reader.read_all(key);
    EXPECT_FALSE(reader.cache.holds(key));
  }
  EXPECT_EQ(reader.asked.size(), 3u);
  EXPECT_TRUE(reader.ahead.empty());
}

TEST(BlockCacheAhead, ABlockInUseStaysForTheNextEpoch) {
  Reader reader(40);
  reader.tell(0, 10);
  reader.load_all_ahead();
  for (int64_t key = 0; key < 10; ++key) reader.read(key, 0);
  reader.tell(5, 5, 1);
  reader.load_all_ahead();
  EXPECT_EQ(reader.ahead.size(), 10);
  for (int64_t key = 0; key < 10; ++key) {
    for (uint32_t r = 1; r < kRecords; ++r) reader.read(key, r);
    EXPECT_EQ(reader.cache.holds(key), key >= 5);
  }
  for (int64_t key = 5; key < 10; ++key) {
    reader.read_all(key);
    EXPECT_FALSE(reader.cache.holds(key));
  }
  EXPECT_TRUE(reader.asked.empty());
  EXPECT_EQ(reader.memory->used(), 0);
}

// Reading that began in the middle of an epoch has blocks of which the rest was never asked for.
TEST(BlockCacheAhead, BlocksThatNobodyUsesAnyMoreMakeRoom) {
  Reader reader(40);
  for (int64_t key = 0; key < 40; ++key) reader.read(key, 0);
  reader.tell(50, 1);
  EXPECT_FALSE(reader.load_ahead());
  for (int i = 0; i < 20; ++i)
    for (uint32_t r = 0; r < kRecords / 2; ++r) reader.read(38, r);
  EXPECT_TRUE(reader.load_ahead());
  EXPECT_TRUE(reader.cache.holds(50));
}

// Somebody takes many records of one of them before the others have their turn again.
TEST(BlockCacheAhead, FewBlocksAreNotTakenForForgotten) {
  constexpr int64_t kFew = 6;
  Reader reader(kFew - 2);
  for (int64_t key = 0; key < kFew; ++key) reader.read(key, 0);
  for (uint32_t r = 2; r < kRecords; ++r) reader.read(kFew - 1, r);
  reader.tell(50, 1);
  EXPECT_FALSE(reader.load_ahead());
  for (int64_t key = 0; key < kFew; ++key) EXPECT_TRUE(reader.cache.holds(key));
}

TEST(BlockCacheAhead, AFaultIsLeftToWhoAsksForTheBlock) {
  Reader reader(40);
  reader.tell(0, 3);
  const auto fails = [](int64_t key) -> std::unique_ptr<RowBlock> {
    if (key == 1) throw std::runtime_error("no");
    return test_row_block(key);
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reader.cache.load_ahead(fails));
  EXPECT_FALSE(reader.cache.load_ahead(fails));
  EXPECT_TRUE(reader.cache.holds(0));
  EXPECT_FALSE(reader.cache.holds(1));
  EXPECT_TRUE(reader.cache.holds(2));
  EXPECT_EQ(reader.memory->used(), 2 * kBlockBytes);
  const uint32_t record = 3;
  EXPECT_THROW(
      reader.cache.get(1, {&record, 1},
                       [](int64_t) -> std::unique_ptr<RowBlock> { throw std::runtime_error("still not"); }),
      std::runtime_error);
  reader.read(1, 3);
}

TEST(BlockCacheAhead, ASeekDropsIt) {
  Reader reader(40);
  reader.tell(0, kBlocks);
  reader.load_all_ahead();
  reader.read(3, 0);
  reader.cache.expect_nothing();
  for (int64_t key = 0; key < kBlocks; ++key) EXPECT_EQ(reader.cache.holds(key), key == 3);
  EXPECT_EQ(reader.memory->used(), kBlockBytes);
  EXPECT_FALSE(reader.load_ahead());
}

}  // namespace
}  // namespace lockstep
