// The permutation of an epoch: the same however many positions are asked for at once, by whatever
// instructions and from however many threads, and the same as ever.
#include "data/order/epoch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/error.h"
#include "data/order/order.h"

namespace lockstep {
namespace {

constexpr Shuffle kShuffles[] = {Shuffle::kNone, Shuffle::kBlock, Shuffle::kGlobal};

// Lanes and the rest; tables of blocks, windows and rounds of every kind; data of less than a window.
const std::vector<OrderShape> kShapes = {
    {.records = 1, .block = 1},
    {.records = 37, .block = 16, .lanes = 4, .window = 8},
    {.records = 700, .block = 512},
    {.records = 8191, .block = 2, .lanes = 1, .window = 1},
    {.records = 65536, .block = 64, .lanes = 16, .window = 64},
    {.records = 70003, .block = 1, .lanes = 4, .window = 8},
    {.records = 70003, .block = 2, .lanes = 4, .window = 8},
    {.records = 70003, .block = 32, .lanes = 8, .window = 4},
    {.records = 70003, .block = 64, .lanes = 4, .window = 16},
    {.records = 70003, .block = 16, .lanes = 16, .window = 128},
    {.records = 300007, .block = 512, .lanes = 2, .window = 64},
    {.records = 300007, .block = 8192, .lanes = 4, .window = 4},
    {.records = 300007, .block = 512, .lanes = 16, .window = 4},
    {.records = 70003, .block = 32, .lanes = 16, .window = 1},
    {.records = (int64_t{1} << 45) + 12345, .block = 512},
};

// Positions as callers ask for them: neighbours, those of a lane, and any; also over the end of the lanes.
std::vector<int64_t> asked(const OrderShape& shape, uint64_t first, size_t count, int64_t stride) {
  std::vector<int64_t> indices(count);
  const auto from = static_cast<int64_t>(mix64(first) % static_cast<uint64_t>(shape.records));
  for (size_t i = 0; i < count; ++i) indices[i] = (from + static_cast<int64_t>(i) * stride) % shape.records;
  return indices;
}

void expect_same(const EpochOrder& order, const std::vector<int64_t>& indices) {
  std::vector<int64_t> expected;
  for (const int64_t index : indices) expected.push_back(order(index));
  for (const bool by_eight : {false, true}) {
    if (by_eight && !has_eight()) continue;
    std::vector<int64_t> found = indices;
    order.replace(found, by_eight);
    EXPECT_EQ(found, expected) << indices.size() << " from " << indices[0] << ", by eight: " << by_eight;
  }
}

TEST(EpochOrder, ManyAtOnceAreTheSameAsOneByOne) {
  for (const OrderShape& shape : kShapes)
    for (const Shuffle shuffle : kShuffles)
      for (const int64_t epoch : {0, 3}) {
        const EpochOrder order(9, epoch, shape, shuffle);
        for (const size_t count : {1, 2, 3, 7, 8, 9, 33, 64, 255, 256, 257, 600})
          for (const int64_t stride : {int64_t{1}, shape.lanes, int64_t{97}})
            expect_same(order, asked(shape, count + static_cast<size_t>(stride), count, stride));
      }
}

TEST(EpochOrder, WholeEpochsAreTheSameAsOneByOne) {
  for (const OrderShape& shape : kShapes) {
    if (shape.records > 70003) continue;
    const EpochOrder order(9, 2, shape, Shuffle::kBlock);
    std::vector<int64_t> indices(static_cast<size_t>(shape.records));
    for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(i);
    expect_same(order, indices);
  }
}

TEST(EpochOrder, PositionsOfSeveralEpochsAreTheSameAsOneByOne) {
  for (const OrderShape& shape : kShapes) {
    const Order order(4, shape, Shuffle::kBlock);
    std::vector<int64_t> positions, expected, expected_epochs;
    for (int64_t i = 0; i < 500; ++i) positions.push_back(2 * shape.records - 250 % shape.records + i);
    for (const int64_t position : positions) {
      expected.push_back(order.record_at(position));
      expected_epochs.push_back(position / shape.records);
    }
    std::vector<int64_t> epochs(positions.size());
    order.records_at(positions, epochs);
    EXPECT_EQ(positions, expected) << shape.records;
    EXPECT_EQ(epochs, expected_epochs) << shape.records;
  }
}

// A thread remembers keys; orders of several seeds and epochs must not meet in what it remembers.
TEST(EpochOrder, ThreadsThatAskAtOnceGetTheSame) {
  const OrderShape& shape = kShapes[8];
  const auto records_of = [&](uint64_t seed) {
    std::vector<int64_t> records;
    for (uint64_t round = 0; round < 40; ++round)
      for (const uint64_t own : {seed, seed + 1}) {
        std::vector<int64_t> positions = asked(shape, round, 64, shape.lanes);
        for (int64_t& position : positions) position += static_cast<int64_t>(round % 3) * shape.records;
        Order(own, shape, Shuffle::kBlock).records_at(positions);
        records.insert(records.end(), positions.begin(), positions.end());
      }
    return records;
  };
  std::vector<std::vector<int64_t>> found(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < found.size(); ++i) threads.emplace_back([&, i] { found[i] = records_of(i); });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], records_of(i));
}

// Over all records of three epochs: the contract, as the golden vectors of order_test.cc.
TEST(EpochOrder, GoldenHashes) {
  const auto hash = [](const OrderShape& shape, Shuffle shuffle) {
    uint64_t hash = 0;
    for (const int64_t epoch : {0, 1, 5}) {
      std::vector<int64_t> records(static_cast<size_t>(shape.records));
      for (size_t i = 0; i < records.size(); ++i) records[i] = static_cast<int64_t>(i);
      EpochOrder(7, epoch, shape, shuffle).replace(records);
      for (const int64_t record : records) hash = mix64(hash ^ static_cast<uint64_t>(record));
    }
    return hash;
  };
  const auto block = [&](const OrderShape& shape) { return hash(shape, Shuffle::kBlock); };
  EXPECT_EQ(block({100003, 2, 16, 64}), 12498979905286171364u);
  EXPECT_EQ(block({100003, 32, 4, 8}), 3287190057589240035u);
  EXPECT_EQ(block({100003, 64, 4, 16}), 942230819564268192u);
  EXPECT_EQ(block({300000, 512, 4, 4}), 8083533627223877443u);
  EXPECT_EQ(block({99999, 16, 16, 64}), 11965535056429391331u);
  EXPECT_EQ(block({65536, 64, 1, 1}), 7818618716381313459u);
  EXPECT_EQ(block({700, 512, 16, 64}), 11669586955912105006u);
  EXPECT_EQ(block({300007, 8192, 4, 4}), 17214246442313433024u);
  EXPECT_EQ(block({300007, 512, 16, 4}), 12748295893493894365u);
  EXPECT_EQ(block({100003, 64, 16, 1}), 3342958933383162071u);
  EXPECT_EQ(hash({100003, 2, 16, 64}, Shuffle::kGlobal), 12029366116477565933u);
  EXPECT_EQ(hash({65536, 64, 1, 1}, Shuffle::kGlobal), 7627181904982264351u);
}

TEST(EpochOrder, RefusesMoreRecordsThanADoubleCounts) {
  EXPECT_THROW(EpochOrder(1, 0, {.records = (int64_t{1} << 52) + 1}, Shuffle::kGlobal), UserError);
}

}  // namespace
}  // namespace lockstep
