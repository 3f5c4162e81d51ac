#include "base/big_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

struct Block {
  BigBytes bytes;
  size_t size = 0;
  int mark = 0;

  Block(BigMemory& memory, size_t bytes_wanted, int with)
      : bytes(memory.take(bytes_wanted)), size(bytes_wanted), mark(with) {
    std::memset(bytes.data(), mark, size);
  }
  bool whole() const {
    for (size_t i = 0; i < size; ++i)
      if (bytes.data()[i] != static_cast<std::byte>(mark)) return false;
    return true;
  }
};

void come_and_go(BigMemory& memory, uint32_t seed) {
  std::minstd_rand draw(seed);
  std::vector<Block> blocks;
  for (int i = 0; i < 400; ++i) {
    if (draw() % 5 < 3 || blocks.empty()) {
      blocks.emplace_back(memory, draw() % (draw() % 4 == 0 ? 900000 : 40000),
                          static_cast<int>(draw() % 256));
    } else {
      const size_t at = draw() % blocks.size();
      ASSERT_TRUE(blocks[at].whole());
      blocks[at] = std::move(blocks.back());
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) ASSERT_TRUE(block.whole());
}

TEST(BigMemory, BlocksKeepWhatTheyHoldWhileOthersComeAndGoOnAllThreads) {
  const auto memory = BigMemory::make();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) threads.emplace_back([&, t] { come_and_go(*memory, t + 1); });
  for (std::thread& thread : threads) thread.join();
  // Nothing is in use, and little is taken from now on: the most that was in use goes.
  for (int i = 0; i < 2000; ++i) memory->take(size_t{1} << 20);
  EXPECT_LE(memory->held(), size_t{32} << 20);
}

TEST(BigMemory, WhatIsGivenBackIsUsedAgain) {
  const auto memory = BigMemory::make();
  std::vector<BigBytes> all;
  for (int i = 0; i < 10; ++i) all.push_back(memory->take(size_t{1} << 20));
  const size_t held = memory->held();
  const std::byte* first = all[0].data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  all.erase(all.begin(), all.begin() + 2);
  EXPECT_EQ(memory->take(size_t{2} << 20).data(), first);
  EXPECT_EQ(memory->held(), held);
}

TEST(BigMemory, WhatIsLargerThanARegionIsOneAndGoesOnceItIsNotNeededForLong) {
  const auto memory = BigMemory::make();
  const BigBytes small = memory->take(100000);
  const size_t before = memory->held();
  {
    const BigBytes large = memory->take(size_t{50} << 20);
    std::memset(large.data(), 1, size_t{50} << 20);
    EXPECT_GE(memory->held(), before + (size_t{50} << 20));
  }
  for (int i = 0; i < 1000; ++i) memory->take(size_t{1} << 20);
  EXPECT_EQ(memory->held(), before);
}

TEST(BigMemory, WhatIsNeededAgainSoonStays) {
  const auto memory = BigMemory::make();
  const size_t block = size_t{5} << 20;
  size_t held = 0;
  for (int epoch = 0; epoch < 10; ++epoch) {
    std::vector<BigBytes> all;
    for (int i = 0; i < 30; ++i) all.push_back(memory->take(block));
    if (epoch == 0) held = memory->held();
    for (int i = 0; i < 30; ++i) {
      all.erase(all.begin());
      all.push_back(memory->take(block));
    }
    all.clear();
    EXPECT_EQ(memory->held(), held);
  }
}

TEST(BigMemory, BytesMayOutliveTheirMaker) {
  BigBytes bytes;
  {
    const auto memory = BigMemory::make();
    bytes = memory->take(100000);
  }
  std::memset(bytes.data(), 7, 100000);
  EXPECT_EQ(bytes.data()[99999], std::byte{7});
}

}  // namespace
}  // namespace lockstep
