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

// So many positions and more are worked out eight at a time.
constexpr size_t kWorthwhile = 3;

uint64_t bits_of(int64_t value, const char* what) {
  if (value < 1 || (value & (value - 1)) != 0) throw UserError("{} is {}; use a power of two", what, value);
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

[[gnu::always_inline]] inline void fill(Numbers& numbers, size_t count, uint64_t value) {
  for (size_t i = 0; i < count; ++i) numbers.at[i] = value;
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
  replace({&index, 1});
  return index;
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
    for (size_t i = count; i % kAtOnce<Eight> != 0; ++i) some.at[i] = some.at[0];
    if (by_eight && count >= kWorthwhile)
      replace_by_eight(some, (count + 7) / 8 * 8, laned);
    else
      replace_one_by_one(some, count, laned);
    for (size_t i = 0; i < count; ++i) indices[at++] = static_cast<int64_t>(some.at[i]);
  }
}

// Windows are cut at multiples of the window's size, in each lane shifted by another part of it. Less than
// three quarters of a window at either end belong to the neighbouring one.
template <typename T>
[[gnu::always_inline]] inline void EpochOrder::find_window(const T& index, T& begin, T& blocks) const {
  const T lane = index & ((uint64_t{1} << lane_bits_) - 1);
  const T row = index >> (lane_bits_ + block_bits_);
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
[[gnu::always_inline]] inline void EpochOrder::find_turn(const T& index, const T& begin, const T& blocks,
                                                         T& round, T& place, T& tweak) const {
  const T lane = index & ((uint64_t{1} << lane_bits_) - 1);
  const T at = index >> lane_bits_;
  const T in_window = at - (begin << block_bits_);
  divide(in_window, blocks, round);
  place = in_window - round * blocks;
  T mixed = lane * kSpread + kRounds;
  mix64_in_place(mixed);
  mixed += at - place;
  mix64_in_place(mixed);
  tweak = mixed;
}

// The place by the rank of a number that each block is given. `most` blocks are in the largest of the
// windows, fewer than two and a half times their usual size.
template <typename T>
[[gnu::always_inline]] inline void EpochOrder::rank(const T& blocks, const T& tweak, uint64_t most,
                                                    T& place) const {
  const T zero{};
  const T one = zero + 1;
  const T key = tweak ^ keys_.first_key();
  T own = place ^ key;
  mix64_in_place(own);
  place = zero;
  for (uint64_t block = 0; block < most; ++block) {
    T other = block ^ key;
    mix64_in_place(other);
    other = blocks > zero + block ? other : ~zero;
    place += other < own ? one : zero;
  }
}

template <typename T>
[[gnu::always_inline]] inline void EpochOrder::find_laned_block(const T& index, const T& begin,
                                                                const T& place, T& block) const {
  const T lane = index & ((uint64_t{1} << lane_bits_) - 1);
  block = lane + ((begin + place) << lane_bits_);
}

template <typename T>
[[gnu::always_inline]] inline void EpochOrder::find_block_tweak(const T& block, T& tweak) const {
  T mixed = block * kSpread + kInBlock;
  mix64_in_place(mixed);
  tweak = mixed;
}

template <typename T>
[[gnu::always_inline]] inline void EpochOrder::find_in_small_block(const T& tweak, T& round) const {
  T key = tweak ^ keys_.first_key();
  mix64_in_place(key);
  round = (round * (key >> 32 | 1) + key) & ((uint64_t{1} << block_bits_) - 1);
}

template <typename T>
[[gnu::always_inline]] inline void EpochOrder::rank_all(Numbers& places, size_t count, const Numbers& blocks,
                                                        const Numbers& tweaks) const {
  uint64_t most = 0;
  for (size_t i = 0; i < count; ++i) most = std::max(most, blocks.at[i]);
  for (size_t i = 0; i < count; i += kAtOnce<T>) {
    T own_blocks, tweak, place;
    blocks.load(i, own_blocks);
    tweaks.load(i, tweak);
    places.load(i, place);
    rank(own_blocks, tweak, most, place);
    places.store(i, place);
  }
}

// Records of lanes, step by step for all of them.
template <typename T>
[[gnu::always_inline]] inline void EpochOrder::replace_laned(Numbers& indices, size_t count) const {
  LOCKSTEP_CHECK(count > 0, "no indices");
  Numbers begins, sizes, tweaks, rounds, places;
  for (size_t i = 0; i < count; i += kAtOnce<T>) {
    T index, begin, blocks;
    indices.load(i, index);
    find_window(index, begin, blocks);
    begins.store(i, begin);
    sizes.store(i, blocks);
  }
  for (size_t i = 0; i < count; i += kAtOnce<T>) {
    T index, begin, blocks, round, place, tweak;
    indices.load(i, index);
    begins.load(i, begin);
    sizes.load(i, blocks);
    find_turn(index, begin, blocks, round, place, tweak);
    rounds.store(i, round);
    places.store(i, place);
    tweaks.store(i, tweak);
  }
  if (window_bits_ <= kRankedBits)
    rank_all<T>(places, count, sizes, tweaks);
  else
    keys_.replace<T>(places, count, sizes, tweaks);
  for (size_t i = 0; i < count; i += kAtOnce<T>) {
    T index, begin, place;
    indices.load(i, index);
    begins.load(i, begin);
    places.load(i, place);
    find_laned_block(index, begin, place, index);
    indices.store(i, index);
  }
  fill(sizes, count, blocks_);
  fill(tweaks, count, kBlocks);
  keys_.replace<T>(indices, count, sizes, tweaks);
  for (size_t i = 0; i < count; i += kAtOnce<T>) {
    T block, tweak, round;
    indices.load(i, block);
    indices.store(i, T(block << block_bits_));
    find_block_tweak(block, tweak);
    tweaks.store(i, tweak);
    if (block_bits_ > kAffineBits) continue;
    rounds.load(i, round);
    find_in_small_block(tweak, round);
    rounds.store(i, round);
  }
  if (block_bits_ > kAffineBits) {
    fill(sizes, count, uint64_t{1} << block_bits_);
    keys_.replace<T>(rounds, count, sizes, tweaks);
  }
  for (size_t i = 0; i < count; ++i) indices.at[i] += rounds.at[i];
}

// Those behind the lanes, or of the global order.
template <typename T>
[[gnu::always_inline]] inline void EpochOrder::replace_rest(Numbers& indices, size_t count) const {
  LOCKSTEP_CHECK(count > 0, "no indices");
  const bool global = shuffle_ == Shuffle::kGlobal;
  const uint64_t in_lanes = laned_;
  const uint64_t bits = block_bits_;
  const uint64_t in_blocks = blocks_ << bits;
  const uint64_t in_block = (uint64_t{1} << bits) - 1;
  Numbers sizes, tweaks, mixed;
  fill(sizes, count, records_ - in_lanes);
  fill(tweaks, count, global ? 0 : kRest);
  for (size_t i = 0; i < count; ++i) indices.at[i] -= in_lanes;
  keys_.replace<T>(indices, count, sizes, tweaks);
  for (size_t i = 0; i < count; ++i) indices.at[i] += in_lanes;
  if (global || in_blocks == in_lanes) return;
  for (size_t i = 0; i < count; ++i) {
    mixed.at[i] = indices.at[i];
    // The records of the last, partial block stay where they are, whatever comes of this.
    indices.at[i] = std::min(indices.at[i], in_blocks - 1) >> bits;
  }
  fill(sizes, count, blocks_);
  fill(tweaks, count, kBlocks);
  keys_.replace<T>(indices, count, sizes, tweaks);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t record = (indices.at[i] << bits) + (mixed.at[i] & in_block);
    indices.at[i] = mixed.at[i] < in_blocks ? record : mixed.at[i];
  }
}

template <typename T>
[[gnu::always_inline]] inline void EpochOrder::replace_by(Numbers& indices, size_t count, bool laned) const {
  if (laned)
    replace_laned<T>(indices, count);
  else
    replace_rest<T>(indices, count);
}

[[gnu::target("avx512f,avx512dq")]] void EpochOrder::replace_by_eight(Numbers& indices, size_t count,
                                                                      bool laned) const {
  replace_by<Eight>(indices, count, laned);
}

void EpochOrder::replace_one_by_one(Numbers& indices, size_t count, bool laned) const {
  replace_by<uint64_t>(indices, count, laned);
}

}  // namespace lockstep
