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

// A bijective mix of 64 bits in which every output bit depends on every input bit; of one number, or of
// several at a time where the type is a vector of them: in place, since clang calls no function by value with
// vectors that the instruction set at hand does not have.
template <typename T>
[[gnu::always_inline]] constexpr void mix64_in_place(T& x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  x ^= x >> 33;
}
constexpr uint64_t mix64(uint64_t x) {
  mix64_in_place(x);
  return x;
}

class Feistel {
 public:
  // Streams tell the permutations of one seed apart.
  Feistel(uint64_t seed, uint64_t stream);

  // The image of index in [0, size) under the permutation of that size and tweak.
  uint64_t operator()(uint64_t index, uint64_t size, uint64_t tweak = 0) const {
    const uint64_t bits = bits_of(size);
    do encrypt(index, bits, tweak);
    while (index >= size);
    return index;
  }

  // Replaces many indices by their images, each with a size and a tweak of its own. At most kMost at once.
  static constexpr size_t kMost = 128;
  void replace(std::span<uint64_t> indices, const uint64_t* sizes, const uint64_t* tweaks) const;

  // For what is mixed by other means than a permutation.
  uint64_t first_key() const { return keys_[0]; }

 private:
  static constexpr size_t kRounds = 6;
  static constexpr uint64_t kMinBits = 6;

  static uint64_t bits_of(uint64_t size) {
    const auto width = static_cast<uint64_t>(std::bit_width(size - 1));
    return width < kMinBits ? kMinBits : width;
  }

  // Each round replaces the left half by left ^ F(right) and swaps; halves of unequal width swap their widths
  // with them, and an even number of rounds brings the widths back. Both steps can be undone, so this is a
  // bijection.
  template <typename T>
  [[gnu::always_inline]] void encrypt(T& value, const T& bits, const T& tweak) const {
    const T left_bits = bits >> 1;
    const T right_bits = bits - left_bits;
    T left = value >> right_bits;
    T right = value & (((T{} + 1) << right_bits) - 1);
    for (size_t round = 0; round < kRounds; round += 2) {
      // The high bits of the mix are its best.
      T mixed = right ^ keys_[round] ^ tweak;
      mix64_in_place(mixed);
      left ^= mixed >> (64 - left_bits);
      mixed = left ^ keys_[round + 1] ^ tweak;
      mix64_in_place(mixed);
      right ^= mixed >> (64 - right_bits);
    }
    value = left << right_bits | right;
  }
  // All of them once, eight at a time.
  void encrypt_wide(std::span<uint64_t> indices, const uint64_t* bits, const uint64_t* tweaks) const;

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
