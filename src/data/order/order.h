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
#include <cstdint>
#include <span>

#include "data/order/epoch_order.h"

namespace lockstep {

// Part of a run's identity: changes whenever record_at, or step_order.h, gives another answer for the same
// arguments.
inline constexpr int kOrderVersion = 6;

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
  // Replaces positions by the records that stand there, and says their epochs where there is room for them.
  void records_at(std::span<int64_t> positions, std::span<int64_t> epochs = {}) const;

 private:
  uint64_t seed_;
  OrderShape shape_;
  Shuffle shuffle_;
};

}  // namespace lockstep
