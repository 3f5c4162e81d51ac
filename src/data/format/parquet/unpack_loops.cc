#include "data/format/parquet/unpack_loops.h"

#include <immintrin.h>

namespace lockstep::parquet {

bool has_unpack_loops() { return __builtin_cpu_supports("avx2") != 0; }

// A group of eight takes `bits` bytes. Its first four numbers are shuffled out of the 16 bytes it begins
// with, the others out of those from its middle on: each to the low end of a lane, whole bytes too far up at
// most.
void unpack_groups(const char* bytes, size_t groups, int bits, uint32_t* out) {
  const int middle = bits / 2;
  alignas(32) uint8_t bytes_of[32];
  alignas(32) uint32_t shift_of[8];
  for (int i = 0; i < 8; ++i) {
    const int at = i * bits - (i < 4 ? 0 : middle * 8);
    shift_of[i] = static_cast<uint32_t>(at % 8);
    for (int k = 0; k < 4; ++k) bytes_of[i * 4 + k] = static_cast<uint8_t>(at / 8 + k);
  }
  const __m256i places = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes_of));
  const __m256i shifts = _mm256_load_si256(reinterpret_cast<const __m256i*>(shift_of));
  const __m256i mask = _mm256_set1_epi32((1 << bits) - 1);
  for (size_t g = 0; g < groups; ++g, bytes += bits, out += 8) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + middle));
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    const __m256i numbers = _mm256_srlv_epi32(_mm256_shuffle_epi8(both, places), shifts);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_and_si256(numbers, mask));
  }
}

}  // namespace lockstep::parquet
