#include "data/order/permutation.h"

#include "base/philox.h"

namespace lockstep {
namespace {

// Sets these draws apart from every other use of the seed.
constexpr uint64_t kOrderStream = 0x6f72646572000000;  // "order"

// How many bits a value has; of eight by the exponent of doubles, which hold them exactly.
[[gnu::always_inline]] inline void find_width(const Eight& value, Eight& width) {
  using Doubles = double __attribute__((vector_size(64)));
  const Doubles exact = __builtin_convertvector(value, Doubles);
  std::memcpy(&width, &exact, sizeof(width));
  width = (width >> 52) - 1022;
}
void find_width(const uint64_t& value, uint64_t& width) {
  width = static_cast<uint64_t>(std::bit_width(value));
}

}  // namespace

bool has_eight() {
  static const bool has = __builtin_cpu_supports("avx512dq") != 0;
  return has;
}

// Two keys of every Philox block. They take longer than to ask for a position, so that a thread remembers the
// last ones.
Feistel::Feistel(uint64_t seed, uint64_t stream) {
  struct Remembered {
    bool any = false;
    uint64_t seed = 0, stream = 0;
    std::array<uint64_t, kRounds> keys = {};
  };
  thread_local Remembered last;
  if (!last.any || last.seed != seed || last.stream != stream) {
    static_assert(kRounds % 2 == 0);
    const uint64_t use = kOrderStream ^ stream;
    const PhiloxKey key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
    for (uint32_t pair = 0; pair < kRounds / 2; ++pair) {
      const auto words =
          philox4x32({pair, 0, static_cast<uint32_t>(use), static_cast<uint32_t>(use >> 32)}, key);
      last.keys[2 * pair] = uint64_t{words[1]} << 32 | words[0];
      last.keys[2 * pair + 1] = uint64_t{words[3]} << 32 | words[2];
    }
    last.any = true;
    last.seed = seed;
    last.stream = stream;
  }
  keys_ = last.keys;
}

template <typename T, size_t N>
[[gnu::always_inline]] inline void Feistel::encrypt_at(size_t i, Numbers& values, const Numbers& sizes,
                                                       const Numbers& tweaks, T& outside) const {
  T value[N], size[N], tweak[N], bits[N];
  for (size_t n = 0; n < N; ++n) {
    values.load(i + n * kAtOnce<T>, value[n]);
    sizes.load(i + n * kAtOnce<T>, size[n]);
    tweaks.load(i + n * kAtOnce<T>, tweak[n]);
    find_width((size[n] - 1) | (uint64_t{1} << (kMinBits - 1)), bits[n]);
  }
  encrypt<T, N>(value, bits, tweak);
  for (size_t n = 0; n < N; ++n) {
    values.store(i + n * kAtOnce<T>, value[n]);
    outside |= size[n] - 1 - value[n];  // the sign says it
  }
}

// All of them once; whether one is outside of [0, size) then.
template <typename T>
[[gnu::always_inline]] inline bool Feistel::encrypt_some(Numbers& values, size_t count, const Numbers& sizes,
                                                         const Numbers& tweaks) const {
  constexpr size_t kSide = 4;  // with 2 or 1 it takes a tenth longer
  T outside{};
  size_t i = 0;
  for (; i + kSide * kAtOnce<T> <= count; i += kSide * kAtOnce<T>)
    encrypt_at<T, kSide>(i, values, sizes, tweaks, outside);
  for (; i < count; i += kAtOnce<T>) encrypt_at<T, 1>(i, values, sizes, tweaks, outside);
  std::array<uint64_t, kAtOnce<T>> each;
  std::memcpy(each.data(), &outside, sizeof(T));
  uint64_t any = 0;
  for (const uint64_t one : each) any |= one;
  return any >> 63 != 0;
}

// Those outside of [0, size) go on together, fewer each time.
template <typename T>
[[gnu::always_inline]] inline void Feistel::walk(Numbers& indices, size_t count, const Numbers& sizes,
                                                 const Numbers& tweaks) const {
  static_assert(Numbers::kMost <= 256);
  std::array<uint8_t, Numbers::kMost> outside;
  size_t left = 0;
  for (size_t i = 0; i < count; ++i) {
    outside[left] = static_cast<uint8_t>(i);
    left += indices.at[i] >= sizes.at[i] ? 1 : 0;
  }
  while (left > 0) {
    Numbers own, own_sizes, own_tweaks;
    for (size_t k = 0; k < left || k % kAtOnce<T> != 0; ++k) {
      const size_t i = outside[k < left ? k : 0];
      own.at[k] = indices.at[i];
      own_sizes.at[k] = sizes.at[i];
      own_tweaks.at[k] = tweaks.at[i];
    }
    encrypt_some<T>(own, left, own_sizes, own_tweaks);
    const size_t walked = left;
    left = 0;
    for (size_t k = 0; k < walked; ++k) {
      const size_t i = outside[k];
      indices.at[i] = own.at[k];
      outside[left] = static_cast<uint8_t>(i);
      left += own.at[k] >= own_sizes.at[k] ? 1 : 0;
    }
  }
}

template <typename T>
[[gnu::always_inline]] inline void Feistel::replace_by(Numbers& indices, size_t count, const Numbers& sizes,
                                                       const Numbers& tweaks) const {
  const Feistel keys = *this;  // which no store to the indices can change
  if (keys.encrypt_some<T>(indices, count, sizes, tweaks)) keys.walk<T>(indices, count, sizes, tweaks);
}

template <>
void Feistel::replace<uint64_t>(Numbers& indices, size_t count, const Numbers& sizes,
                                const Numbers& tweaks) const {
  replace_by<uint64_t>(indices, count, sizes, tweaks);
}

template <>
[[gnu::target("avx512f,avx512dq")]] void Feistel::replace<Eight>(Numbers& indices, size_t count,
                                                                 const Numbers& sizes,
                                                                 const Numbers& tweaks) const {
  replace_by<Eight>(indices, count, sizes, tweaks);
}

}  // namespace lockstep
