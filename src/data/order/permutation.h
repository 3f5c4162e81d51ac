// Permutations of [0, size) as pure functions, with nothing stored: a keyed Feistel network over the smallest
// number of bits that holds size - 1, at least kMinBits. Results outside [0, size) go through the network
// again (cycle walking), fewer than two times on average except for tiny sizes.
//
// Round keys come from Philox, keyed by the seed and what the permutation is for. Many permutations of one
// key are told apart by a tweak, which costs nothing to change: windows and lanes have their own without a
// key schedule each.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

// A bijective mix of 64 bits in which every output bit depends on every input bit.
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

class Feistel {
 public:
  // Streams tell the permutations of one seed apart.
  Feistel(uint64_t seed, uint64_t stream);

  // The image of index in [0, size) under the permutation of that size and tweak.
  uint64_t operator()(uint64_t index, uint64_t size, uint64_t tweak = 0) const {
    const int width = static_cast<int>(std::bit_width(size - 1));
    const int bits = width < kMinBits ? kMinBits : width;
    do index = encrypt(index, bits / 2, bits - bits / 2, tweak);
    while (index >= size);
    return index;
  }

  // The same for many, with index, size and tweak of the i-th given by calls: their multiplications wait for
  // nothing but each other, so that several are under way at a time. At most kMost at once.
  static constexpr size_t kMost = 128;
  template <typename SizeOf, typename TweakOf>
  void replace(std::span<uint64_t> indices, const SizeOf& size_of, const TweakOf& tweak_of) const {
    std::array<uint8_t, kMost> outside;  // those that go through the network again
    size_t left = 0;
    const Feistel keys = *this;  // which no store to the indices can change
    const auto step = [&](size_t i) {
      const uint64_t size = size_of(i);
      const int width = static_cast<int>(std::bit_width(size - 1));
      const int bits = width < kMinBits ? kMinBits : width;
      const uint64_t image = keys.encrypt(indices[i], bits / 2, bits - bits / 2, tweak_of(i));
      indices[i] = image;
      outside[left] = static_cast<uint8_t>(i);
      left += image >= size ? 1 : 0;
    };
    for (size_t i = 0; i < indices.size(); ++i) step(i);
    while (left > 0) {
      const size_t again = left;
      left = 0;
      for (size_t i = 0; i < again; ++i) step(outside[i]);
    }
  }

  // For what is mixed by other means than a permutation.
  uint64_t first_key() const { return keys_[0]; }

 private:
  static constexpr int kRounds = 6;
  static constexpr int kMinBits = 6;

  // Each round replaces the left half by left ^ F(right) and swaps; halves of unequal width swap their widths
  // with them, and an even number of rounds brings the widths back. Both steps can be undone, so this is a
  // bijection.
  uint64_t encrypt(uint64_t value, int left_bits, int right_bits, uint64_t tweak) const {
    uint64_t left = value >> right_bits;
    uint64_t right = value & ((uint64_t{1} << right_bits) - 1);
    for (int round = 0; round < kRounds; round += 2) {
      // The high bits of the mix are its best.
      left ^= mix64(right ^ keys_[static_cast<size_t>(round)] ^ tweak) >> (64 - left_bits);
      right ^= mix64(left ^ keys_[static_cast<size_t>(round) + 1] ^ tweak) >> (64 - right_bits);
    }
    return left << right_bits | right;
  }

  std::array<uint64_t, kRounds> keys_;
};

// A permutation of [0, size).
class Permutation {
 public:
  Permutation(uint64_t seed, uint64_t stream, int64_t size)
      : feistel_(seed, stream), size_(static_cast<uint64_t>(size)) {}

  int64_t operator()(int64_t index) const {
    return static_cast<int64_t>(feistel_(static_cast<uint64_t>(index), size_));
  }

 private:
  Feistel feistel_;
  uint64_t size_;
};

}  // namespace lockstep
