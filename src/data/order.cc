#include "data/order.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/philox.h"

namespace lockstep {
namespace {

// Sets these draws apart from every other use of the seed.
constexpr uint64_t kOrderStream = 0x6f72646572000000;  // "order"

// A bijective mix of 64 bits in which every output bit depends on every input bit (two multiply-xorshift
// rounds).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

}  // namespace

Permutation::Permutation(uint64_t seed, uint64_t stream, int64_t size) : size_(static_cast<uint64_t>(size)) {
  const int bits = std::max<int>(static_cast<int>(std::bit_width(size_ - 1)), kMinBits);
  left_bits_ = bits / 2;
  right_bits_ = bits - left_bits_;
  const Philox random(seed, kOrderStream ^ stream);
  for (uint64_t i = 0; i < kRounds; ++i)
    keys_[i] = uint64_t{random.bits(2 * i + 1)} << 32 | random.bits(2 * i);
}

// Each round replaces the left half by left ^ F(right) and swaps; halves of unequal width swap their widths
// with them, and an even number of rounds brings the widths back. Both steps can be undone, so this is a
// bijection.
uint64_t Permutation::encrypt(uint64_t value) const {
  int left_bits = left_bits_;
  int right_bits = right_bits_;
  uint64_t left = value >> right_bits;
  uint64_t right = value & ((uint64_t{1} << right_bits) - 1);
  for (const uint64_t key : keys_) {
    // The high bits of the mix are its best.
    const uint64_t mixed = left ^ (mix(right ^ key) >> (64 - left_bits));
    left = right;
    right = mixed;
    std::swap(left_bits, right_bits);
  }
  return left << right_bits | right;
}

int64_t Permutation::operator()(int64_t index) const {
  uint64_t value = static_cast<uint64_t>(index);
  do value = encrypt(value);
  while (value >= size_);
  return static_cast<int64_t>(value);
}

Order::Order(uint64_t seed, int64_t size, bool shuffle) : seed_(seed), size_(size), shuffle_(shuffle) {
  if (size < 1) throw UserError("the data has no records; give at least one");
}

int64_t Order::record_at(int64_t position) const {
  int64_t record = 0;
  records(position, {&record, 1});
  return record;
}

void Order::records(int64_t first, std::span<int64_t> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const int64_t position = first + static_cast<int64_t>(done);
    const int64_t start = position % size_;
    const size_t count = std::min(out.size() - done, static_cast<size_t>(size_ - start));
    const Permutation permutation(seed_, static_cast<uint64_t>(epoch_of(position)), size_);
    for (size_t i = 0; i < count; ++i) {
      const int64_t index = start + static_cast<int64_t>(i);
      out[done + i] = shuffle_ ? permutation(index) : index;
    }
    done += count;
  }
}

}  // namespace lockstep
