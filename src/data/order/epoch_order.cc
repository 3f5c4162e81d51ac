#include "data/order/epoch_order.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace lockstep {
namespace {

// Tweaks of the epoch's keys, one for each use.
constexpr uint64_t kBlocks = 0x1;
constexpr uint64_t kRest = 0x2;
constexpr uint64_t kRounds = 0x3;
constexpr uint64_t kInBlock = 0x4;

constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;

// Blocks of up to so many bits take an affine map, and windows of up to so many rank numbers: a Feistel
// network over few bits goes through itself many times.
constexpr uint64_t kAffineBits = 5;
constexpr uint64_t kRankedBits = 3;

// So many positions and more are worked out together.
constexpr size_t kWorthwhile = 3;

uint64_t bits_of(int64_t value, const char* what) {
  if (value < 1 || !std::has_single_bit(static_cast<uint64_t>(value)))
    throw UserError("{} is {}; use a power of two", what, value);
  return static_cast<uint64_t>(std::countr_zero(static_cast<uint64_t>(value)));
}

// Exact: what is divided is less than kMostRecords, so that a quotient below a whole number is rounded to
// none that reaches it.
void divide(const uint64_t& dividend, const uint64_t& divisor, uint64_t& quotient) {
  quotient = dividend / divisor;
}
[[gnu::always_inline]] inline void divide(const Eight& dividend, const Eight& divisor, Eight& quotient) {
  using Doubles = double __attribute__((vector_size(64)));
  quotient = __builtin_convertvector(
      __builtin_convertvector(dividend, Doubles) / __builtin_convertvector(divisor, Doubles), Eight);
}

bool any(bool condition) { return condition; }
template <typename T>
[[gnu::always_inline]] inline bool any(const T& mask) {
  int64_t all = 0;
  for (size_t i = 0; i < kAtOnce<T>; ++i) all |= mask[i];
  return all != 0;
}

}  // namespace

EpochOrder::EpochOrder(uint64_t seed, int64_t epoch, const OrderShape& shape, Shuffle shuffle)
    : shuffle_(shuffle == Shuffle::kBlock && shape.block == 1 ? Shuffle::kGlobal : shuffle),
      records_(static_cast<uint64_t>(shape.records)),
      block_bits_(bits_of(shape.block, "the block of the order")),
      lane_bits_(bits_of(shape.lanes, "the number of lanes")),
      window_bits_(bits_of(shape.window, "the window of the order")),
      blocks_(records_ >> block_bits_),
      rows_(shuffle_ == Shuffle::kBlock ? static_cast<uint64_t>(shape.rows()) : 0),
      laned_(rows_ << (block_bits_ + lane_bits_)),
      keys_(seed, static_cast<uint64_t>(epoch)) {
  if (shape.records > kMostRecords)
    throw UserError("{} records are more than an order has; use at most 2^52", shape.records);
}

int64_t EpochOrder::operator()(int64_t index) const {
  const uint64_t i = static_cast<uint64_t>(index);
  switch (shuffle_) {
    case Shuffle::kNone: return index;
    case Shuffle::kGlobal: return static_cast<int64_t>(keys_(i, records_));
    case Shuffle::kBlock: break;
  }
  return static_cast<int64_t>(i < laned_ ? laned_record(i) : rest_record(i - laned_));
}

void EpochOrder::replace(std::span<int64_t> indices, bool by_eight) const {
  if (shuffle_ == Shuffle::kNone) return;
  Numbers some;
  for (size_t at = 0; at < indices.size();) {
    const bool laned = static_cast<uint64_t>(indices[at]) < laned_;
    const size_t most = std::min(Numbers::kMost, indices.size() - at);
    size_t count = 0;
    for (; count < most && (static_cast<uint64_t>(indices[at + count]) < laned_) == laned; ++count)
      some.at[count] = static_cast<uint64_t>(indices[at + count]);
    if (count < kWorthwhile) {
      for (const size_t end = at + count; at < end; ++at) indices[at] = (*this)(indices[at]);
      continue;
    }
    for (size_t i = count; i % kAtOnce<Eight> != 0; ++i) some.at[i] = some.at[0];
    if (by_eight)
      replace_by_eight(some, (count + 7) / 8 * 8, laned);
    else
      replace_one_by_one(some, count, laned);
    for (size_t i = 0; i < count; ++i) indices[at++] = static_cast<int64_t>(some.at[i]);
  }
}

// Windows are cut at multiples of the window's size, in each lane shifted by another part of it. Less than
// three quarters of a window at either end belong to the neighbouring one.
template <typename T>
[[gnu::always_inline]] inline void EpochOrder::find_window(const T& lane, const T& row, T& begin,
                                                           T& blocks) const {
  const T zero{};
  const T one = zero + 1;
  const uint64_t size = uint64_t{1} << window_bits_;
  const T ahead = (lane << window_bits_) >> lane_bits_;
  const T last = (rows_ - 1 + ahead) >> window_bits_;
  const T in_last = rows_ + ahead - (last << window_bits_);
  const T low = 4 * (size - ahead) < zero + 3 * size ? one : zero;
  T high = 4 * in_last < zero + 3 * size ? last - 1 : last;
  high = high < low ? low : high;
  T window = (row + ahead) >> window_bits_;
  window = window < low ? low : window;
  window = window > high ? high : window;
  begin = window == low ? zero : (window << window_bits_) - ahead;
  const T end = window == high ? zero + rows_ : ((window + 1) << window_bits_) - ahead;
  blocks = end - begin;
}

template <typename T>
[[gnu::always_inline]] inline void EpochOrder::find_turn(const T& index, Turn<T>& turn) const {
  const T lane = index & ((uint64_t{1} << lane_bits_) - 1);
  const T at = index >> lane_bits_;
  T begin;
  find_window(lane, at >> block_bits_, begin, turn.blocks);
  turn.first = lane + (begin << lane_bits_);
  const T in_window = at - (begin << block_bits_);
  divide(in_window, turn.blocks, turn.round);
  turn.place = in_window - turn.round * turn.blocks;
  T tweak = lane * kSpread + kRounds;
  mix64_in_place(tweak);
  tweak += at - turn.place;
  mix64_in_place(tweak);
  turn.tweak = tweak;
}

// The place by the rank of a number that each block is given; a window has fewer than two and a half times
// its usual size.
template <typename T>
[[gnu::always_inline]] inline void EpochOrder::rank(Turn<T>& turn) const {
  const T zero{};
  const T one = zero + 1;
  const T tweak = turn.tweak ^ keys_.first_key();
  T own = turn.place ^ tweak;
  mix64_in_place(own);
  T smaller = zero;
  for (T block = zero; any(block < turn.blocks); block += 1) {
    T other = block ^ tweak;
    mix64_in_place(other);
    smaller += ((block < turn.blocks) & (other < own)) ? one : zero;
  }
  turn.place = smaller;
}

// Which record of a block is the round-th that is read of it.
template <typename T>
[[gnu::always_inline]] inline void EpochOrder::find_in_block(const T& block, T& round) const {
  T tweak = block * kSpread + kInBlock;
  mix64_in_place(tweak);
  if (block_bits_ > kAffineBits) {
    keys_.encrypt(round, T{} + block_bits_, tweak);
    return;
  }
  T key = tweak ^ keys_.first_key();
  mix64_in_place(key);
  round = (round * (key >> 32 | 1) + key) & ((uint64_t{1} << block_bits_) - 1);
}

uint64_t EpochOrder::laned_record(uint64_t index) const {
  Turn<uint64_t> turn;
  find_turn(index, turn);
  if (window_bits_ <= kRankedBits)
    rank(turn);
  else
    turn.place = keys_(turn.place, turn.blocks, turn.tweak);
  const uint64_t block = keys_(turn.first + (turn.place << lane_bits_), blocks_, kBlocks);
  find_in_block(block, turn.round);
  return (block << block_bits_) + turn.round;
}

uint64_t EpochOrder::rest_record(uint64_t index) const {
  const uint64_t mixed = keys_(index, records_ - laned_, kRest);
  const uint64_t whole = (blocks_ << block_bits_) - laned_;  // records in blocks that no lane has
  if (mixed >= whole) return laned_ + mixed;
  const uint64_t block = keys_((laned_ + mixed) >> block_bits_, blocks_, kBlocks);
  return (block << block_bits_) + (mixed & ((uint64_t{1} << block_bits_) - 1));
}

// As laned_record, step by step for all of them.
template <typename T>
[[gnu::always_inline]] inline void EpochOrder::replace_laned(Numbers& indices, size_t count) const {
  Numbers sizes, tweaks, firsts, rounds;
  for (size_t i = 0; i < count; i += kAtOnce<T>) {
    T index;
    indices.load(i, index);
    Turn<T> turn;
    find_turn(index, turn);
    if (window_bits_ <= kRankedBits) rank(turn);
    indices.store(i, turn.place);
    sizes.store(i, turn.blocks);
    tweaks.store(i, turn.tweak);
    firsts.store(i, turn.first);
    rounds.store(i, turn.round);
  }
  if (window_bits_ > kRankedBits) keys_.replace_by<T>(indices, count, sizes, tweaks);
  for (size_t i = 0; i < count; ++i) {
    indices.at[i] = firsts.at[i] + (indices.at[i] << lane_bits_);
    sizes.at[i] = blocks_;
    tweaks.at[i] = kBlocks;
  }
  keys_.replace_by<T>(indices, count, sizes, tweaks);
  for (size_t i = 0; i < count; i += kAtOnce<T>) {
    T block, round;
    indices.load(i, block);
    rounds.load(i, round);
    find_in_block(block, round);
    indices.store(i, T((block << block_bits_) + round));
  }
}

// As rest_record, or of the global order.
template <typename T>
[[gnu::always_inline]] inline void EpochOrder::replace_rest(Numbers& indices, size_t count) const {
  Numbers sizes, tweaks, mixed;
  const bool global = shuffle_ == Shuffle::kGlobal;
  sizes.at.fill(records_ - laned_);
  tweaks.at.fill(global ? 0 : kRest);
  for (size_t i = 0; i < count; ++i) indices.at[i] -= laned_;
  keys_.replace_by<T>(indices, count, sizes, tweaks);
  const uint64_t in_blocks = blocks_ << block_bits_;
  if (global || in_blocks == laned_) {
    for (size_t i = 0; i < count; ++i) indices.at[i] += laned_;
    return;
  }
  sizes.at.fill(blocks_);
  tweaks.at.fill(kBlocks);
  for (size_t i = 0; i < count; ++i) {
    mixed.at[i] = laned_ + indices.at[i];
    // The records of the last, partial block stay where they are, whatever comes of this.
    indices.at[i] = std::min(mixed.at[i], in_blocks - 1) >> block_bits_;
  }
  keys_.replace_by<T>(indices, count, sizes, tweaks);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t in_block = mixed.at[i] & ((uint64_t{1} << block_bits_) - 1);
    indices.at[i] = mixed.at[i] < in_blocks ? (indices.at[i] << block_bits_) + in_block : mixed.at[i];
  }
}

template <typename T>
[[gnu::always_inline]] inline void EpochOrder::replace_by(Numbers& indices, size_t count, bool laned) const {
  if (laned)
    replace_laned<T>(indices, count);
  else
    replace_rest<T>(indices, count);
}

[[gnu::target("avx512f,avx512dq,lzcnt")]] void EpochOrder::replace_by_eight(Numbers& indices, size_t count,
                                                                            bool laned) const {
  replace_by<Eight>(indices, count, laned);
}

void EpochOrder::replace_one_by_one(Numbers& indices, size_t count, bool laned) const {
  replace_by<uint64_t>(indices, count, laned);
}

}  // namespace lockstep
