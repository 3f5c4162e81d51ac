#include "data/format/parquet/row_loops.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace lockstep::parquet {
namespace {

constexpr size_t kSide = 8;
// A line that is asked for goes to a cache behind the nearest, which is full of what is being looked up.
constexpr int kNotNearest = 1;
constexpr size_t kLineEntries = 64 / sizeof(uint32_t);
// Rows further on whose memory is asked for: it was written long ago, and is in no cache.
constexpr size_t kRowsAhead = 16;

void ask_for(std::byte* rows, size_t row_bytes) {
  for (size_t r = 0; r < kSide; ++r) __builtin_prefetch(rows + r * row_bytes, 1, kNotNearest);
}

// Eight rows of eight columns at a time, so that no value is moved by itself.
[[gnu::target("avx2")]] void turn(const uint32_t* columns, size_t apart, std::byte* rows, size_t row_bytes) {
  __m256 c[kSide];
  for (size_t i = 0; i < kSide; ++i)
    c[i] = _mm256_loadu_ps(reinterpret_cast<const float*>(columns + i * apart));
  __m256 pairs[kSide];
  for (size_t i = 0; i < kSide; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(c[i], c[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(c[i], c[i + 1]);
  }
  __m256 fours[kSide];
  for (size_t i = 0; i < kSide; i += 4) {
    fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], _MM_SHUFFLE(1, 0, 1, 0));
    fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], _MM_SHUFFLE(3, 2, 3, 2));
    fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], _MM_SHUFFLE(1, 0, 1, 0));
    fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], _MM_SHUFFLE(3, 2, 3, 2));
  }
  for (size_t i = 0; i < 4; ++i) {
    _mm256_storeu_ps(reinterpret_cast<float*>(rows + i * row_bytes),
                     _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20));
    _mm256_storeu_ps(reinterpret_cast<float*>(rows + (i + 4) * row_bytes),
                     _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31));
  }
}

bool is_wide() {
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  return wide;
}

void turn_singly(const uint32_t* columns, size_t apart, size_t width, size_t count, std::byte* rows,
                 size_t row_bytes) {
  for (size_t r = 0; r < count; ++r)
    for (size_t i = 0; i < width; ++i) std::memcpy(rows + r * row_bytes + i * 4, columns + i * apart + r, 4);
}

}  // namespace

void bring_near(const uint32_t* entries, size_t count) {
  uint32_t all = 0;
  for (size_t i = 0; i < count; i += kLineEntries) all ^= entries[i];
  __asm__ volatile("" : : "r"(all));  // or nothing of it would be done
}

void pick_entries(const uint32_t* entries, std::span<const uint32_t> picks, std::span<const uint32_t> next,
                  uint32_t* out) {
  const size_t both = std::min(picks.size(), next.size());
  for (size_t i = 0; i < both; ++i) {
    __builtin_prefetch(entries + next[i], 0, kNotNearest);
    out[i] = entries[picks[i]];
  }
  for (size_t i = both; i < picks.size(); ++i) out[i] = entries[picks[i]];
}

void put_into_rows(const uint32_t* columns, size_t apart, size_t width, size_t count, std::byte* rows,
                   size_t row_bytes) {
  const bool wide = is_wide();
  for (size_t r = 0; r < count; r += kSide) {
    const size_t here = std::min(kSide, count - r);
    const size_t turned = wide && here == kSide ? width / kSide * kSide : 0;
    std::byte* const to = rows + r * row_bytes;
    if (r + kRowsAhead + kSide <= count) ask_for(to + kRowsAhead * row_bytes, row_bytes);
    for (size_t i = 0; i < turned; i += kSide) turn(columns + i * apart + r, apart, to + i * 4, row_bytes);
    turn_singly(columns + turned * apart + r, apart, width - turned, here, to + turned * 4, row_bytes);
  }
}

}  // namespace lockstep::parquet
