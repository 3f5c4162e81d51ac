// Permutations of [0, size) as pure functions, with nothing stored: a keyed Feistel network over the smallest
// number of bits that holds size - 1, at least kMinBits. Results outside [0, size) go through the network
// again (cycle walking), fewer than two times on average except for tiny sizes.
//
// Round keys come from Philox, keyed by the seed and what the permutation is for. Many permutations of one
// key are told apart by a tweak, which costs nothing to change: windows and lanes have their own without a
// key schedule each.
//
// Templates are written once for T, one number or eight at a time. Vectors go by reference: clang calls no
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
  static constexpr size_t kMost = 256;
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
  static constexpr uint64_t kMostBits = 62;

  // Streams tell the permutations of one seed apart.
  Feistel(uint64_t seed, uint64_t stream);

  // The image of index in [0, size) under the permutation of that size, at most 2^kMostBits, and tweak.
  uint64_t operator()(uint64_t index, uint64_t size, uint64_t tweak = 0) const {
    const uint64_t bits = bits_of(size);
    do encrypt<uint64_t, 1>(&index, &bits, &tweak);
    while (index >= size);
    return index;
  }

  // Replaces many indices by their images, each with a size, at most 2^kExactBits, and a tweak of its own. T
  // is uint64_t, or Eight where the processor has_eight().
  static constexpr uint64_t kExactBits = 53;
  template <typename T>
  void replace(Numbers& indices, size_t count, const Numbers& sizes, const Numbers& tweaks) const;

  // For what is mixed by other means than a permutation.
  uint64_t first_key() const { return keys_[0]; }

 private:
  static constexpr size_t kRounds = 6;
  static constexpr uint64_t kMinBits = 6;

  static uint64_t bits_of(uint64_t size) {
    return static_cast<uint64_t>(std::bit_width((size - 1) | (uint64_t{1} << (kMinBits - 1))));
  }

  // Each round replaces the left half by left ^ F(right) and swaps; halves of unequal width swap their widths
  // with them, and an even number of rounds brings the widths back. Both steps can be undone, so this is a
  // bijection of [0, 2^bits). N of them go through their rounds side by side: each waits for its own products
  // most of the time, and a processor does not look far enough ahead to find the next.
  template <typename T, size_t N>
  [[gnu::always_inline]] void encrypt(T* values, const T* bits, const T* tweaks) const {
    T left[N], right[N], left_bits[N], right_bits[N];
    for (size_t n = 0; n < N; ++n) {
      left_bits[n] = bits[n] >> 1;
      right_bits[n] = bits[n] - left_bits[n];
      left[n] = values[n] >> right_bits[n];
      right[n] = values[n] & (((T{} + 1) << right_bits[n]) - 1);
    }
    for (size_t round = 0; round < kRounds; round += 2) {
      // The high bits of the mix are its best; a half has at most 31.
      for (size_t n = 0; n < N; ++n) {
        T mixed = right[n] ^ keys_[round] ^ tweaks[n];
        mix_high_bits(mixed);
        left[n] ^= mixed >> (64 - left_bits[n]);
      }
      for (size_t n = 0; n < N; ++n) {
        T mixed = left[n] ^ keys_[round + 1] ^ tweaks[n];
        mix_high_bits(mixed);
        right[n] ^= mixed >> (64 - right_bits[n]);
      }
    }
    for (size_t n = 0; n < N; ++n) values[n] = left[n] << right_bits[n] | right[n];
  }

  template <typename T, size_t N>
  void encrypt_at(size_t i, Numbers& values, const Numbers& sizes, const Numbers& tweaks, T& outside) const;
  template <typename T>
  bool encrypt_some(Numbers& values, size_t count, const Numbers& sizes, const Numbers& tweaks) const;
  template <typename T>
  void walk(Numbers& indices, size_t count, const Numbers& sizes, const Numbers& tweaks) const;
  template <typename T>
  void replace_by(Numbers& indices, size_t count, const Numbers& sizes, const Numbers& tweaks) const;

  std::array<uint64_t, kRounds> keys_;
};

template <>
void Feistel::replace<uint64_t>(Numbers&, size_t, const Numbers&, const Numbers&) const;
template <>
void Feistel::replace<Eight>(Numbers&, size_t, const Numbers&, const Numbers&) const;

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
