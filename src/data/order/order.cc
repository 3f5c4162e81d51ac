#include "data/order/order.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace lockstep {
namespace {

// Tweaks of the epoch's keys, one for each use.
constexpr uint64_t kBlocks = 0x1;
constexpr uint64_t kRest = 0x2;
constexpr uint64_t kWindows = 0x3;

uint64_t window_tweak(uint64_t lane, uint64_t window) {
  return mix64(mix64(lane * 0x9e3779b97f4a7c15 + kWindows) + window);
}

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
      in_lane_((blocks_ >> lane_bits_) << block_bits_),
      laned_(in_lane_ << lane_bits_),
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

uint64_t EpochOrder::laned_record(uint64_t index) const {
  const uint64_t lane = index & ((uint64_t{1} << lane_bits_) - 1);
  const uint64_t at = index >> lane_bits_;
  const int span_bits = window_bits_ + block_bits_;
  // Lane c begins with a window that is shorter by c blocks, so that windows do not all end together.
  const uint64_t ahead = (lane & ((uint64_t{1} << window_bits_) - 1)) << block_bits_;
  const uint64_t window = (at + ahead) >> span_bits;
  const uint64_t begin = std::max(window << span_bits, ahead) - ahead;
  const uint64_t end = std::min(((window + 1) << span_bits) - ahead, in_lane_);
  const uint64_t mixed = begin + keys_(at - begin, end - begin, window_tweak(lane, window));
  const uint64_t block = keys_(lane + ((mixed >> block_bits_) << lane_bits_), blocks_, kBlocks);
  return (block << block_bits_) + (mixed & ((uint64_t{1} << block_bits_) - 1));
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
  const bool laned =
      shuffle_ == Shuffle::kBlock && shape_.block > 1 && shape_.records / shape_.block >= shape_.lanes;
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
    for (; done < out.size(); ++done) {
      const int64_t index = first + static_cast<int64_t>(done) * stride - epoch * shape_.records;
      if (index >= shape_.records) break;
      out[done] = order(index);
    }
  }
}

void Order::records_at(std::span<int64_t> positions) const {
  for (size_t at = 0; at < positions.size();) {
    const int64_t epoch = epoch_of(positions[at]);
    const EpochOrder order(seed_, epoch, shape_, shuffle_);
    for (; at < positions.size() && epoch_of(positions[at]) == epoch; ++at)
      positions[at] = order(positions[at] - epoch * shape_.records);
  }
}

}  // namespace lockstep
