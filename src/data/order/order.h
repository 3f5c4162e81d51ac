// Order: which record stands at a position of a run, as a pure function of (seed, shape of the data,
// position).
//
// Positions count records from the start of the run; epoch = position / records, and each epoch is its own
// permutation. Nothing is stored and nothing advances, so resuming is arithmetic, and any number of workers,
// readers and batch sizes walk the same order, each record exactly once per epoch.
//
//   none    record = position.
//   global  one permutation of all records: for data that memory holds or that is generated.
//   block   for data on disk. Records lie in blocks that are read at once. All blocks are permuted and dealt
//           out to lanes; position p belongs to lane p % lanes. A lane is cut into windows, and goes through
//           the blocks of a window round after round: a round has one record of each block, blocks in an
//           order of their own each round, records of a block in an order of their own. So a reader holds
//           lanes * window blocks, every block is read once, and a worker that takes whole lanes reads only
//           these. Windows of the lanes end one after the other, so that blocks are needed at an even pace.
//           What does not fill all lanes alike, and the last, partial block, is mixed completely at the end
//           of the epoch; so is everything where a lane would have less than a window.
//
// Records of one block are a round apart: neighbours of a lane share a block only where two rounds meet, with
// a chance of 1 / window^2. With a window mixed as a whole it would be 1 / window, which is also the
// correlation of record numbers at lag `lanes`.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "data/order/permutation.h"

namespace lockstep {

// Part of a run's identity: changes whenever record_at, or step_order.h, gives another answer for the same
// arguments.
inline constexpr int kOrderVersion = 4;

enum class Shuffle : uint8_t { kNone, kBlock, kGlobal };

struct OrderShape {
  int64_t records = 0;
  int64_t block = 1;    // records that are read at once; 1 makes block the same as global
  int64_t lanes = 16;   // at most as many workers can read disjoint blocks
  int64_t window = 64;  // blocks of a lane that are mixed with each other, about
};

// The permutation of one epoch.
class EpochOrder {
 public:
  EpochOrder(uint64_t seed, int64_t epoch, const OrderShape& shape, Shuffle shuffle);

  int64_t operator()(int64_t index) const;
  // Replaces indices by their records: less work than one by one.
  void replace(std::span<int64_t> indices) const;

 private:
  struct Window {
    uint64_t begin, blocks;  // of its lane
  };
  // The window of a lane that holds its row-th block.
  Window window_of(uint64_t lane, uint64_t row) const;
  uint64_t laned_record(uint64_t index) const;
  void replace_laned(std::span<uint64_t> indices) const;
  // Where each block of a small window stands in one of its rounds.
  using Ranks = std::array<uint8_t, 32>;
  bool ranks_rounds() const { return window_bits_ <= 3; }
  Ranks ranks_of(uint64_t blocks, uint64_t tweak) const;
  // Which record of a block is the round-th that is read of it.
  uint64_t in_block(uint64_t block, uint64_t round) const;
  uint64_t in_small_block(uint64_t tweak, uint64_t round) const;
  uint64_t rest_record(uint64_t index) const;

  Shuffle shuffle_;
  uint64_t records_;
  int block_bits_, lane_bits_, window_bits_;
  uint64_t blocks_;  // full ones
  uint64_t rows_;    // blocks of a lane
  uint64_t laned_;   // records of all lanes
  Feistel keys_;
};

class Order {
 public:
  // Throws UserError for data without records, and unless block, lanes and window are powers of two.
  Order(uint64_t seed, const OrderShape& shape, Shuffle shuffle);
  // Of data that is not read in blocks.
  Order(uint64_t seed, int64_t records, bool shuffle = true)
      : Order(seed, OrderShape{.records = records}, shuffle ? Shuffle::kGlobal : Shuffle::kNone) {}

  int64_t size() const { return shape_.records; }
  const OrderShape& shape() const { return shape_; }
  // Lanes with blocks of their own; 1 where there are none.
  int64_t lanes() const;
  int64_t epoch_of(int64_t position) const { return position / shape_.records; }
  int64_t record_at(int64_t position) const;
  // The permutation of one epoch, for who asks for positions of it one by one.
  EpochOrder epoch(int64_t number) const { return {seed_, number, shape_, shuffle_}; }
  // out[i] = record_at(first + i * stride), with the epoch's keys computed once.
  void records(int64_t first, std::span<int64_t> out, int64_t stride = 1) const;
  // Replaces positions by the records that stand there.
  void records_at(std::span<int64_t> positions) const;

 private:
  uint64_t seed_;
  OrderShape shape_;
  Shuffle shuffle_;
};

}  // namespace lockstep
