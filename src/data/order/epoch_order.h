// EpochOrder: the permutation of one epoch, of which order.h says what it looks like. A pure function of
// (seed, epoch, shape, shuffle, index) that stores nothing; asked for many indices at once it works eight of
// them out together where the processor can.
#pragma once
#include <cstdint>
#include <span>

#include "data/order/permutation.h"

namespace lockstep {

enum class Shuffle : uint8_t { kNone, kBlock, kGlobal };

struct OrderShape {
  int64_t records = 0;
  int64_t block = 1;    // records that are read at once; 1 makes block the same as global
  int64_t lanes = 16;   // at most as many workers can read disjoint blocks
  int64_t window = 64;  // blocks of a lane that are mixed with each other, about

  // Blocks of each lane; none where a lane would have less than a window, because a reader holds all of such
  // data anyway, and lanes of few blocks differ from each other for as long as they last.
  int64_t rows() const {
    const int64_t rows = records / block / lanes;
    return rows < window ? 0 : rows;
  }
};

class EpochOrder {
 public:
  static constexpr int64_t kMostRecords = int64_t{1} << 52;  // which a double holds

  // Throws UserError unless block, lanes and window are powers of two, and for more records.
  EpochOrder(uint64_t seed, int64_t epoch, const OrderShape& shape, Shuffle shuffle);

  int64_t operator()(int64_t index) const;
  // Replaces indices by their records.
  void replace(std::span<int64_t> indices, bool by_eight = has_eight()) const;

 private:
  // Of one index, or eight of them. The window: its first block in its lane, and how many it has.
  template <typename T>
  void find_window(const T& index, T& begin, T& blocks) const;
  // The round in the window, the place in the round, the tweak of the round.
  template <typename T>
  void find_turn(const T& index, const T& begin, const T& blocks, T& round, T& place, T& tweak) const;
  // Replaces the place in the round by that in the window, where windows are small.
  template <typename T>
  void rank(const T& blocks, const T& tweak, uint64_t most, T& place) const;
  template <typename T>
  void rank_all(Numbers& places, size_t count, const Numbers& blocks, const Numbers& tweaks) const;
  // Which of all the blocks that are dealt out to the lanes it is.
  template <typename T>
  void find_laned_block(const T& index, const T& begin, const T& place, T& block) const;
  template <typename T>
  void find_block_tweak(const T& block, T& tweak) const;
  // Replaces a round by the record that is read in it, where blocks are small.
  template <typename T>
  void find_in_small_block(const T& tweak, T& round) const;

  template <typename T>
  void replace_by(Numbers& indices, size_t count, bool laned) const;
  template <typename T>
  void replace_laned(Numbers& indices, size_t count) const;
  template <typename T>
  void replace_rest(Numbers& indices, size_t count) const;
  void replace_by_eight(Numbers& indices, size_t count, bool laned) const;
  void replace_one_by_one(Numbers& indices, size_t count, bool laned) const;

  Shuffle shuffle_;
  uint64_t records_;
  uint64_t block_bits_, lane_bits_, window_bits_;
  uint64_t blocks_;  // full ones
  uint64_t rows_;    // blocks of a lane
  uint64_t laned_;   // records of all lanes
  Feistel keys_;
};

}  // namespace lockstep
