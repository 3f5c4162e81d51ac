// Permutations of [0, size) as pure functions, with nothing stored: a keyed Feistel network over the smallest
// number of bits that holds size - 1, at least kMinBits. Results outside [0, size) go through the network
// again (cycle walking), fewer than two times on average except for tiny sizes.
//
// Round keys come from Philox, keyed by the seed and what the permutation is for. Many permutations of one
// key are told apart by a tweak, which costs nothing to change: windows and lanes have their own without a
// key schedule each.
//
// What follows is written once for T, one number or eight at a time. Vectors go by reference: clang calls no
// function by value with vectors that the instruction set at hand does not have.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lockstep {

using Eight = uint64_t __attribute__((vector_size(64)));

// Whether the processor has instructions for Eight.
bool has_eight();

// Numbers that are worked out together. With T = Eight a count of them is a multiple of kAtOnce.
struct Numbers {
  static constexpr size_t kMost = 128;
  alignas(sizeof(Eight)) std::array<uint64_t, kMost> at;

  template <typename T>
  [[gnu::always_inline]] void load(size_t i, T& value) const {
    std::memcpy(&value, at.data() + i, sizeof(T));
  }
  template <typename T>
  [[gnu::always_inline]] void store(size_t i, const T& value) {
    std::memcpy(at.data() + i, &value, sizeof(T));
  }
};
template <typename T>
inline constexpr size_t kAtOnce = sizeof(T) / sizeof(uint64_t);

// A bijective mix of 64 bits in which every output bit depends on every input bit. Its last step leaves the
// high 31 bits as they are: who takes no others leaves it out.
template <typename T>
[[gnu::always_inline]] constexpr void mix_high_bits(T& x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
}
template <typename T>
[[gnu::always_inline]] constexpr void mix64_in_place(T& x) {
  mix_high_bits(x);
  x ^= x >> 33;
}
constexpr uint64_t mix64(uint64_t x) {
  mix64_in_place(x);
  return x;
}

class Feistel {
 public:
  static constexpr uint64_t kMinBits = 6;
  static constexpr uint64_t kMostBits = 62;

  // Streams tell the permutations of one seed apart.
  Feistel(uint64_t seed, uint64_t stream);

  // The image of index in [0, size) under the permutation of that size, at most 2^kMostBits, and tweak.
  uint64_t operator()(uint64_t index, uint64_t size, uint64_t tweak = 0) const {
    const uint64_t bits = bits_of(size);
    do encrypt(index, bits, tweak);
    while (index >= size);
    return index;
  }

  // Replaces many indices by their images, each with a size and a tweak of its own.
  void replace(Numbers& indices, size_t count, const Numbers& sizes, const Numbers& tweaks) const;
  template <typename T>
  void replace_by(Numbers& indices, size_t count, const Numbers& sizes, const Numbers& tweaks) const;

  // The image in [0, 2^bits), without walking, where the size is this power of two: kMinBits to kMostBits.
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
      // The high bits of the mix are its best; a half has at most 31.
      T mixed = right ^ keys_[round] ^ tweak;
      mix_high_bits(mixed);
      left ^= mixed >> (64 - left_bits);
      mixed = left ^ keys_[round + 1] ^ tweak;
      mix_high_bits(mixed);
      right ^= mixed >> (64 - right_bits);
    }
    value = left << right_bits | right;
  }

  // For what is mixed by other means than a permutation.
  uint64_t first_key() const { return keys_[0]; }

 private:
  static constexpr size_t kRounds = 6;

  void replace_by_eight(Numbers& indices, size_t count, const Numbers& sizes, const Numbers& tweaks) const;

  static uint64_t bits_of(uint64_t size) {
    return static_cast<uint64_t>(std::bit_width((size - 1) | (uint64_t{1} << (kMinBits - 1))));
  }
  template <typename T>
  void encrypt_all(Numbers& values, size_t count, const Numbers& bits, const Numbers& tweaks) const;

  std::array<uint64_t, kRounds> keys_;
};

template <typename T>
[[gnu::always_inline]] inline void Feistel::encrypt_all(Numbers& values, size_t count, const Numbers& bits,
                                                        const Numbers& tweaks) const {
  for (size_t i = 0; i < count; i += kAtOnce<T>) {
    T value, width, tweak;
    values.load(i, value);
    bits.load(i, width);
    tweaks.load(i, tweak);
    encrypt(value, width, tweak);
    values.store(i, value);
  }
}

template <typename T>
[[gnu::always_inline]] inline void Feistel::replace_by(Numbers& indices, size_t count, const Numbers& sizes,
                                                       const Numbers& tweaks) const {
  Numbers bits;
  std::array<uint8_t, Numbers::kMost> outside;  // of [0, size)
  for (size_t i = 0; i < count; ++i)
    bits.at[i] = i > 0 && sizes.at[i] == sizes.at[i - 1] ? bits.at[i - 1] : bits_of(sizes.at[i]);
  encrypt_all<T>(indices, count, bits, tweaks);
  size_t left = 0;
  for (size_t i = 0; i < count; ++i) {
    outside[left] = static_cast<uint8_t>(i);
    left += indices.at[i] >= sizes.at[i] ? 1 : 0;
  }
  // They walk on together, fewer each time.
  while (left > 0) {
    Numbers values, own_bits, own_tweaks;
    const size_t padded = (left + kAtOnce<T> - 1) / kAtOnce<T> * kAtOnce<T>;
    for (size_t k = 0; k < padded; ++k) {
      const size_t i = outside[k < left ? k : 0];
      values.at[k] = indices.at[i];
      own_bits.at[k] = bits.at[i];
      own_tweaks.at[k] = tweaks.at[i];
    }
    encrypt_all<T>(values, padded, own_bits, own_tweaks);
    const size_t walked = left;
    left = 0;
    for (size_t k = 0; k < walked; ++k) {
      const size_t i = outside[k];
      indices.at[i] = values.at[k];
      outside[left] = static_cast<uint8_t>(i);
      left += values.at[k] >= sizes.at[i] ? 1 : 0;
    }
  }
}

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
