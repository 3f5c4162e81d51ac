// Epochs read in all the ways that must not matter, and compared position by position: for tests of formats.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "data/order/selection.h"
#include "data/order/step_order.h"
#include "data/stream/batch_stream.h"

namespace lockstep {

inline constexpr int64_t kMiB = 1 << 20;

// How an epoch is read; none of it may matter.
struct Reading {
  int readers = 1;
  int64_t ranks = 1;
  int64_t memory = 1024 * kMiB;
  int64_t microbatch = 32;
  int64_t microbatches = 16;

  std::string text() const {
    return fmt::format("{} readers, {} ranks, {} MiB, {} microbatches of {}", readers, ranks, memory / kMiB,
                       microbatches, microbatch);
  }
};

// A hash of the record at every position; 0 where it was not read.
using Epoch = std::vector<uint64_t>;

inline uint64_t row_hash(const Batch& batch, int64_t row) {
  std::string bytes;
  for (size_t c = 0; c < batch.columns().size(); ++c) {
    const auto each = static_cast<size_t>(batch.bytes(c) / batch.records());
    bytes.append(static_cast<const char*>(batch.data(c)) + static_cast<size_t>(row) * each, each);
  }
  return entity_hash(1, bytes) | 1;
}

// The parameter names a format; who derives writes files of it and opens them.
class EpochTest : public testing::TestWithParam<std::string> {
 protected:
  // `memory` is data.memory of a worker.
  virtual std::shared_ptr<const Source> open(int64_t memory) const = 0;
  // That holds what is mixed, and little more.
  virtual int64_t small_memory() const { return 16 * kMiB; }

  // So many records that each lane goes through some windows: fewer are mixed as a whole.
  void expect_windows(int64_t windows) const {
    const auto source = open(1024 * kMiB);
    EXPECT_GE(shape_of(*source).rows(), windows * kWindow) << source->size() << " records";
  }

  // A few readings that differ in everything.
  void expect_same_in_a_sample() const {
    const Epoch expected = read({});
    expect_distinct(expected);
    expect_same(expected, {.readers = 8, .ranks = 3, .memory = small_memory()});
    expect_same(expected, {.readers = 2, .ranks = 8, .microbatch = 8, .microbatches = 40});
    expect_same(expected, {.readers = 2, .ranks = 7, .memory = small_memory(), .microbatch = 24},
                static_cast<int64_t>(expected.size()) * 3 / 5);
  }

  void expect_same_in_all_ways() const {
    const Epoch expected = read({});
    expect_distinct(expected);
    for (const int readers : {1, 2, 8})
      for (const int64_t ranks : {1, 2, 3, 7, 8})
        for (const int64_t memory : {small_memory(), 1024 * kMiB})
          expect_same(expected, {.readers = readers, .ranks = ranks, .memory = memory});
  }

  void expect_same_when_resumed() const {
    const Epoch expected = read({});
    std::minstd_rand draw(3);
    const auto pick = [&](std::initializer_list<int64_t> values) {
      return *(values.begin() + draw() % values.size());
    };
    for (int i = 0; i < 20; ++i) {
      const auto from = static_cast<int64_t>(draw() % expected.size());
      expect_same(expected,
                  {.readers = static_cast<int>(pick({1, 2, 8})),
                   .ranks = pick({1, 2, 3, 7, 8}),
                   .memory = pick({small_memory(), 1024 * kMiB}),
                   .microbatch = pick({1, 7, 32, 100}),
                   .microbatches = pick({8, 16, 21})},
                  from);
    }
  }

 private:
  // Records differ from each other, so that a swap would show.
  static void expect_distinct(const Epoch& epoch) {
    EXPECT_GT(std::set<uint64_t>(epoch.begin(), epoch.end()).size(), epoch.size() * 9 / 10);
  }

  static constexpr int64_t kWindow = 4;

  static OrderShape shape_of(const Source& source) {
    return {.records = source.size(), .block = source.block_records(), .window = kWindow};
  }
  static StepOrder order_of(const Source& source, const Reading& reading) {
    return {Order(11, shape_of(source), Shuffle::kBlock), reading.microbatch, reading.microbatches};
  }

  // What one rank reads of the positions from `from` to the end of the epoch.
  static void read_rank(const Source& source, const Reading& reading, int64_t rank, int64_t from,
                        Epoch& epoch) {
    const StepOrder order = order_of(source, reading);
    const int64_t first = rank * reading.microbatches / reading.ranks;
    const int64_t own = (rank + 1) * reading.microbatches / reading.ranks - first;
    const int64_t steps = (source.size() - from + order.samples() - 1) / order.samples();
    const auto begin_of = [&](int64_t batch) { return from + batch / own * order.samples(); };
    BatchPlan plan;
    plan.batches = steps * own;
    plan.rows = reading.microbatch;
    plan.records = [&](int64_t batch, int64_t row, std::span<int64_t> records, std::vector<int64_t>* epochs) {
      order.records(begin_of(batch), first + batch % own, row, records, epochs);
    };
    ReaderPool pool(reading.readers);
    BatchStream stream(source, plan,
                       {.pool = &pool, .processors = reading.readers, .budget = reading.memory / 16});
    std::vector<int64_t> positions(static_cast<size_t>(reading.microbatch));
    for (int64_t n = 0; n < plan.batches; ++n) {
      const Batch& batch = stream.get(n);
      order.positions(begin_of(n), first + n % own, positions);
      for (size_t r = 0; r < positions.size(); ++r) {
        if (positions[r] >= source.size()) continue;
        uint64_t& place = epoch[static_cast<size_t>(positions[r])];
        EXPECT_EQ(place, 0) << "position " << positions[r] << " is read twice";
        place = row_hash(batch, static_cast<int64_t>(r));
      }
    }
  }

  Epoch read(const Reading& reading, int64_t from = 0) const {
    const auto source = open(reading.memory);
    Epoch epoch(static_cast<size_t>(source->size()));
    for (int64_t rank = 0; rank < reading.ranks; ++rank) read_rank(*source, reading, rank, from, epoch);
    EXPECT_EQ(std::count(epoch.begin() + from, epoch.end(), 0), 0);
    EXPECT_EQ(std::count(epoch.begin(), epoch.begin() + from, 0), from);
    return epoch;
  }

  void expect_same(const Epoch& expected, const Reading& reading, int64_t from = 0) const {
    const Epoch found = read(reading, from);
    EXPECT_TRUE(std::equal(found.begin() + from, found.end(), expected.begin() + from))
        << reading.text() << ", from position " << from;
  }
};

// The name of a test's parameter.
inline const auto kFormatName = [](const auto& info) { return info.param; };

}  // namespace lockstep
