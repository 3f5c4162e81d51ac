// Compiled for AVX2, so nothing of the standard library is used here: what one instantiates of it, all files
// of a program may come to call.
#include "data/format/parquet/unpack_loops.h"

#include <immintrin.h>

namespace lockstep::parquet {

bool has_unpack_loops() { return __builtin_cpu_supports("avx2") != 0; }

namespace {

// A group of eight takes `bits` bytes. Its first four numbers are shuffled out of the 16 bytes it begins
// with, the others out of those from its middle on: each to the low end of a lane, whole bytes too far up at
// most.
struct Shuffle {
  alignas(32) uint8_t places[32];
  alignas(32) uint32_t shifts[8];
};

// Runs are often of some hundred numbers: what they need is worked out once, for every number of bits.
struct Shuffles {
  Shuffle of[kMostLoopBits + 1] = {};

  constexpr Shuffles() {
    for (int bits = 0; bits <= kMostLoopBits; ++bits)
      for (int i = 0; i < 8; ++i) {
        const int at = i * bits - (i < 4 ? 0 : bits / 2 * 8);
        of[bits].shifts[i] = static_cast<uint32_t>(at % 8);
        for (int k = 0; k < 4; ++k) of[bits].places[i * 4 + k] = static_cast<uint8_t>(at / 8 + k);
      }
  }
};
constexpr Shuffles kShuffles;

class Groups {
 public:
  explicit Groups(int bits) : middle_(bits / 2), mask_(_mm256_set1_epi32((1 << bits) - 1)) {
    const Shuffle& shuffle = kShuffles.of[bits];
    places_ = _mm256_load_si256(reinterpret_cast<const __m256i*>(shuffle.places));
    shifts_ = _mm256_load_si256(reinterpret_cast<const __m256i*>(shuffle.shifts));
  }

  __m256i numbers(const char* bytes) const {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + middle_));
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    return _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(both, places_), shifts_), mask_);
  }

 private:
  int middle_;
  __m256i mask_, places_, shifts_;
};

uint32_t largest_of(__m256i numbers) {
  alignas(32) uint32_t each[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(each), numbers);
  uint32_t largest = 0;
  for (const uint32_t value : each) largest = value > largest ? value : largest;
  return largest;
}

}  // namespace

uint32_t unpack_groups(const char* bytes, size_t groups, int bits, uint32_t* out) {
  const Groups all(bits);
  __m256i most = _mm256_setzero_si256();
  for (size_t g = 0; g < groups; ++g, bytes += bits, out += 8) {
    const __m256i numbers = all.numbers(bytes);
    most = _mm256_max_epu32(most, numbers);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), numbers);
  }
  return largest_of(most);
}

uint32_t most_of_groups(const char* bytes, size_t groups, int bits) {
  const Groups all(bits);
  __m256i most = _mm256_setzero_si256();
  for (size_t g = 0; g < groups; ++g, bytes += bits) most = _mm256_max_epu32(most, all.numbers(bytes));
  return largest_of(most);
}

}  // namespace lockstep::parquet
