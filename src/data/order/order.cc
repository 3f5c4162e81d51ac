#include "data/order/order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

#include "base/error.h"

namespace lockstep {
namespace {

// Tweaks of the epoch's keys, one for each use.
constexpr uint64_t kBlocks = 0x1;
constexpr uint64_t kRest = 0x2;
constexpr uint64_t kRounds = 0x3;
constexpr uint64_t kInBlock = 0x4;

// Blocks of up to so many bits take an affine map: a Feistel network over few bits goes through itself many
// times.
constexpr int kAffineBits = 5;

// So many positions and more are worked out together.
constexpr size_t kWorthwhile = 4;

// The round of a lane that begins at its at-th record.
uint64_t round_tweak(uint64_t lane, uint64_t at) {
  return mix64(mix64(lane * 0x9e3779b97f4a7c15 + kRounds) + at);
}

uint64_t block_tweak(uint64_t block) { return mix64(block * 0x9e3779b97f4a7c15 + kInBlock); }

// Blocks of each lane; none where a lane would have less than a window, because a reader holds all of such
// data anyway, and lanes of few blocks differ from each other for as long as they last.
int64_t rows_of(const OrderShape& shape) {
  const int64_t rows = shape.records / shape.block / shape.lanes;
  return rows < shape.window ? 0 : rows;
}

// Whether what is left at the end of a lane is too few blocks for a window of its own.
bool too_few(uint64_t blocks, uint64_t window) { return 4 * blocks < 3 * window; }

int bits_of(int64_t value, const char* what) {
  if (value < 1 || !std::has_single_bit(static_cast<uint64_t>(value)))
    throw UserError("{} is {}; use a power of two", what, value);
  return std::countr_zero(static_cast<uint64_t>(value));
}

}  // namespace

EpochOrder::EpochOrder(uint64_t seed, int64_t epoch, const OrderShape& shape, Shuffle shuffle)
    : shuffle_(shuffle == Shuffle::kBlock && shape.block == 1 ? Shuffle::kGlobal : shuffle),
      records_(static_cast<uint64_t>(shape.records)),
      block_bits_(bits_of(shape.block, "the block of the order")),
      lane_bits_(bits_of(shape.lanes, "the number of lanes")),
      window_bits_(bits_of(shape.window, "the window of the order")),
      blocks_(records_ >> block_bits_),
      rows_(static_cast<uint64_t>(rows_of(shape))),
      laned_(rows_ << (block_bits_ + lane_bits_)),
      keys_(seed, static_cast<uint64_t>(epoch)) {}

int64_t EpochOrder::operator()(int64_t index) const {
  const uint64_t i = static_cast<uint64_t>(index);
  switch (shuffle_) {
    case Shuffle::kNone: return index;
    case Shuffle::kGlobal: return static_cast<int64_t>(keys_(i, records_));
    case Shuffle::kBlock: break;
  }
  return static_cast<int64_t>(i < laned_ ? laned_record(i) : rest_record(i - laned_));
}

void EpochOrder::replace(std::span<int64_t> indices) const {
  std::array<uint64_t, Feistel::kMost> some;
  for (size_t at = 0; at < indices.size();) {
    size_t count = 0;
    if (shuffle_ == Shuffle::kBlock)
      while (count < some.size() && at + count < indices.size() &&
             static_cast<uint64_t>(indices[at + count]) < laned_) {
        some[count] = static_cast<uint64_t>(indices[at + count]);
        ++count;
      }
    if (count < kWorthwhile) {
      for (const size_t end = at + std::max<size_t>(count, 1); at < end; ++at)
        indices[at] = (*this)(indices[at]);
      continue;
    }
    replace_laned(std::span(some).first(count));
    for (size_t i = 0; i < count; ++i) indices[at++] = static_cast<int64_t>(some[i]);
  }
}

// Windows are cut at multiples of the window's size, in each lane shifted by another part of it. Too few
// blocks at either end belong to the neighbouring window.
EpochOrder::Window EpochOrder::window_of(uint64_t lane, uint64_t row) const {
  const uint64_t size = uint64_t{1} << window_bits_;
  const uint64_t ahead = (lane << window_bits_) >> lane_bits_;
  const uint64_t last = (rows_ - 1 + ahead) >> window_bits_;
  const uint64_t in_last = rows_ + ahead - (last << window_bits_);
  const uint64_t low = last > 0 && too_few(size - ahead, size) ? 1 : 0;
  const uint64_t high = std::max(low, last > 0 && too_few(in_last, size) ? last - 1 : last);
  const uint64_t window = std::clamp((row + ahead) >> window_bits_, low, high);
  const uint64_t begin = window == low ? 0 : (window << window_bits_) - ahead;
  const uint64_t end = window == high ? rows_ : ((window + 1) << window_bits_) - ahead;
  return {begin, end - begin};
}

uint64_t EpochOrder::laned_record(uint64_t index) const {
  const uint64_t lane = index & ((uint64_t{1} << lane_bits_) - 1);
  const uint64_t at = index >> lane_bits_;
  const Window window = window_of(lane, at >> block_bits_);
  const uint64_t in_window = at - (window.begin << block_bits_);
  const uint64_t round = in_window / window.blocks;
  const uint64_t turn = in_window % window.blocks;
  const uint64_t tweak = round_tweak(lane, at - turn);
  const uint64_t place =
      ranks_rounds() ? ranks_of(window.blocks, tweak)[turn] : keys_(turn, window.blocks, tweak);
  const uint64_t row = window.begin + place;
  const uint64_t block = keys_(lane + (row << lane_bits_), blocks_, kBlocks);
  return (block << block_bits_) + in_block(block, round);
}

// By the rank of a number that each block is given. A Feistel network over few blocks would go through itself
// many times; a window has fewer than two and a half times its usual size.
EpochOrder::Ranks EpochOrder::ranks_of(uint64_t blocks, uint64_t tweak) const {
  std::array<uint64_t, std::tuple_size_v<Ranks>> numbers;
  for (uint64_t i = 0; i < blocks; ++i) numbers[i] = mix64(i ^ tweak ^ keys_.first_key());
  Ranks ranks{};
  for (uint64_t i = 0; i < blocks; ++i)
    for (uint64_t j = 0; j < blocks; ++j) ranks[i] += numbers[j] < numbers[i] ? 1 : 0;
  return ranks;
}

// As laned_record, step by step for all of them.
void EpochOrder::replace_laned(std::span<uint64_t> indices) const {
  std::array<uint64_t, Feistel::kMost> lanes, begins, rounds;
  std::array<uint64_t, Feistel::kMost> sizes{}, tweaks{};
  Window window{0, 0};
  uint64_t begin = ~uint64_t{0};  // of the round
  Ranks ranks{};
  for (size_t i = 0; i < indices.size(); ++i) {
    lanes[i] = indices[i] & ((uint64_t{1} << lane_bits_) - 1);
    const uint64_t at = indices[i] >> lane_bits_;
    const uint64_t row = at >> block_bits_;
    // Most have the lane, the window and the round of the one before.
    const bool same_lane = i > 0 && lanes[i] == lanes[i - 1];
    if (!same_lane || row - window.begin >= window.blocks) window = window_of(lanes[i], row);
    begins[i] = window.begin;
    sizes[i] = window.blocks;
    const uint64_t in_window = at - (window.begin << block_bits_);
    rounds[i] = in_window / window.blocks;
    indices[i] = in_window - rounds[i] * window.blocks;
    const bool same_round = same_lane && at - indices[i] == begin;
    begin = at - indices[i];
    tweaks[i] = same_round ? tweaks[i - 1] : round_tweak(lanes[i], begin);
    if (!ranks_rounds()) continue;
    if (!same_round) ranks = ranks_of(window.blocks, tweaks[i]);
    indices[i] = ranks[indices[i]];
  }
  if (!ranks_rounds()) keys_.replace(indices, sizes.data(), tweaks.data());
  for (size_t i = 0; i < indices.size(); ++i)
    indices[i] = lanes[i] + ((begins[i] + indices[i]) << lane_bits_);
  sizes.fill(blocks_);
  tweaks.fill(kBlocks);
  keys_.replace(indices, sizes.data(), tweaks.data());
  for (size_t i = 0; i < indices.size(); ++i) {
    tweaks[i] = block_tweak(indices[i]);
    indices[i] <<= block_bits_;
  }
  sizes.fill(uint64_t{1} << block_bits_);
  if (block_bits_ > kAffineBits)
    keys_.replace(std::span(rounds).first(indices.size()), sizes.data(), tweaks.data());
  else
    for (size_t i = 0; i < indices.size(); ++i) rounds[i] = in_small_block(tweaks[i], rounds[i]);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] += rounds[i];
}

uint64_t EpochOrder::in_block(uint64_t block, uint64_t round) const {
  const uint64_t tweak = block_tweak(block);
  if (block_bits_ > kAffineBits) return keys_(round, uint64_t{1} << block_bits_, tweak);
  return in_small_block(tweak, round);
}

uint64_t EpochOrder::in_small_block(uint64_t tweak, uint64_t round) const {
  const uint64_t key = mix64(tweak ^ keys_.first_key());
  return (round * (key >> 32 | 1) + key) & ((uint64_t{1} << block_bits_) - 1);
}

uint64_t EpochOrder::rest_record(uint64_t index) const {
  const uint64_t mixed = keys_(index, records_ - laned_, kRest);
  const uint64_t whole = (blocks_ << block_bits_) - laned_;  // records in blocks that no lane has
  if (mixed >= whole) return laned_ + mixed;
  const uint64_t block = keys_((laned_ + mixed) >> block_bits_, blocks_, kBlocks);
  return (block << block_bits_) + (mixed & ((uint64_t{1} << block_bits_) - 1));
}

Order::Order(uint64_t seed, const OrderShape& shape, Shuffle shuffle)
    : seed_(seed), shape_(shape), shuffle_(shuffle) {
  if (shape.records < 1) throw UserError("the data has no records; give at least one");
  EpochOrder(seed, 0, shape, shuffle);  // checks the shape
}

int64_t Order::lanes() const {
  const bool laned = shuffle_ == Shuffle::kBlock && shape_.block > 1 && rows_of(shape_) > 0;
  return laned ? shape_.lanes : 1;
}

int64_t Order::record_at(int64_t position) const {
  int64_t record = 0;
  records(position, {&record, 1});
  return record;
}

void Order::records(int64_t first, std::span<int64_t> out, int64_t stride) const {
  size_t done = 0;
  while (done < out.size()) {
    const int64_t epoch = epoch_of(first + static_cast<int64_t>(done) * stride);
    const EpochOrder order(seed_, epoch, shape_, shuffle_);
    const size_t begin = done;
    for (; done < out.size(); ++done) {
      out[done] = first + static_cast<int64_t>(done) * stride - epoch * shape_.records;
      if (out[done] >= shape_.records) break;
    }
    order.replace(out.subspan(begin, done - begin));
  }
}

void Order::records_at(std::span<int64_t> positions) const {
  for (size_t at = 0; at < positions.size();) {
    const int64_t epoch = epoch_of(positions[at]);
    const EpochOrder order(seed_, epoch, shape_, shuffle_);
    const int64_t start = epoch * shape_.records;
    const size_t begin = at;
    for (; at < positions.size() && positions[at] >= start && positions[at] - start < shape_.records; ++at)
      positions[at] -= start;
    order.replace(positions.subspan(begin, at - begin));
  }
}

}  // namespace lockstep
