#include "comm/simd/codec_loops.h"

#include <string.h>

namespace lockstep::comm::LOCKSTEP_ISA {
namespace {

constexpr int64_t kGroups = kInt8Values / kInt8Group;
constexpr uint32_t kInfinity = 0x7f800000u;
constexpr uint32_t kNaN = 0x7fc00000u;
constexpr uint16_t kNotFinite = 0xffff;  // as a scale

// ---- bf16 ----

float wide(uint16_t bits) { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }

uint16_t narrow(float x) {
  const auto bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return static_cast<uint16_t>(x != x ? 0x7fc0u : rounded);
}

float rounded(float x) {
  const auto bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t even = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
  return __builtin_bit_cast(float, x != x ? kNaN : even);
}

void encode_16(uint16_t* into, const float* from, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) into[i] = narrow(from[i]);
}

void decode_16(float* into, const uint16_t* from, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) into[i] = wide(from[i]);
}

void merge_16(float* const* terms, int64_t term_count, int64_t n) {
  constexpr int64_t kTile = 1024;
  float sums[kTile];
  for (int64_t begin = 0; begin < n; begin += kTile) {
    const int64_t size = n - begin < kTile ? n - begin : kTile;
    const float* last = terms[term_count - 1] + begin;
    for (int64_t i = 0; i < size; ++i) sums[i] = rounded(last[i]);
    for (int64_t term = term_count - 2; term >= 0; --term) {
      const float* left = terms[term] + begin;
      for (int64_t i = 0; i < size; ++i) sums[i] = rounded(left[i] + sums[i]);
    }
    memcpy(terms[0] + begin, sums, static_cast<size_t>(size) * sizeof(float));
  }
}

// ---- int8 ----

struct Block {
  uint16_t scales[kGroups];
  int8_t values[kInt8Values];
};
static_assert(sizeof(Block) == kInt8Bytes);

// The upper 16 bits of a positive f32 without its sign: 8 of the exponent, 8 behind the point.
uint16_t scale_for(uint32_t largest) {
  if (largest >= kInfinity) return kNotFinite;
  const auto exact = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, largest) / 127.0f);
  if (exact < 0x00800000u) return 0;
  return static_cast<uint16_t>((exact + 0x7fffu) >> 15);
}

float scale_of(uint16_t code) {
  return __builtin_bit_cast(float, code == kNotFinite ? kNaN : static_cast<uint32_t>(code) << 15);
}

void encode(Block& block, const float* from) {
  // Added to a number of up to 22 bits, it leaves the nearest whole number in the lowest bits.
  constexpr float kWhole = 12582912.0f;
  constexpr int32_t kWholeBits = 0x4b400000;
  for (int64_t group = 0; group < kGroups; ++group) {
    const float* x = from + group * kInt8Group;
    int8_t* q = block.values + group * kInt8Group;
    int32_t largest = 0;
    for (int64_t i = 0; i < kInt8Group; ++i) {
      const int32_t size = __builtin_bit_cast(int32_t, x[i]) & 0x7fffffff;
      largest = size > largest ? size : largest;
    }
    const uint16_t scale = scale_for(static_cast<uint32_t>(largest));
    block.scales[group] = scale;
    if (scale == 0 || scale == kNotFinite) {
      memset(q, 0, kInt8Group);
      continue;
    }
    const float inverse = 1.0f / scale_of(scale);
    for (int64_t i = 0; i < kInt8Group; ++i)
      q[i] = static_cast<int8_t>(__builtin_bit_cast(int32_t, x[i] * inverse + kWhole) - kWholeBits);
  }
}

void decode(float* into, const Block& block) {
  for (int64_t group = 0; group < kGroups; ++group) {
    const float scale = scale_of(block.scales[group]);
    const int8_t* q = block.values + group * kInt8Group;
    float* x = into + group * kInt8Group;
    for (int64_t i = 0; i < kInt8Group; ++i) x[i] = static_cast<float>(q[i]) * scale;
  }
}

void encode_8(void* into, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) encode(static_cast<Block*>(into)[i], from + i * kInt8Values);
}

void decode_8(float* into, const void* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) decode(into + i * kInt8Values, static_cast<const Block*>(from)[i]);
}

void add2_8(void* into, const void* a, const void* b, int64_t n) {
  float left[kInt8Values], right[kInt8Values];
  for (int64_t i = 0; i < n; ++i) {
    decode(left, static_cast<const Block*>(a)[i]);
    decode(right, static_cast<const Block*>(b)[i]);
    for (int64_t j = 0; j < kInt8Values; ++j) left[j] += right[j];
    encode(static_cast<Block*>(into)[i], left);
  }
}

void merge_8(float* const* terms, int64_t term_count, int64_t n) {
  Block block;
  float sums[kInt8Values];
  for (int64_t begin = 0; begin < n; begin += kInt8Values) {
    encode(block, terms[term_count - 1] + begin);
    for (int64_t term = term_count - 2; term >= 0; --term) {
      decode(sums, block);
      const float* left = terms[term] + begin;
      for (int64_t i = 0; i < kInt8Values; ++i) sums[i] = left[i] + sums[i];
      encode(block, sums);
    }
    decode(terms[0] + begin, block);
  }
}

// ---- what is not sent ----

bool add_residual(float* residual, const float* gradient, int64_t n) {
  uint32_t largest = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    residual[i] += gradient[i];
    const uint32_t size = __builtin_bit_cast(uint32_t, residual[i]) & 0x7fffffffu;
    largest = size > largest ? size : largest;
  }
  return largest < kInfinity;
}

// The k-th largest is found bit by bit: magnitudes are ordered as their bits are.
void select_top(uint16_t* into, const float* values, int64_t k) {
  int32_t sizes[kInt8Values];
  for (int64_t i = 0; i < kInt8Values; ++i) sizes[i] = __builtin_bit_cast(int32_t, values[i]) & 0x7fffffff;
  const auto at_least = [&](int32_t bound) {
    int32_t count = 0;
    for (int64_t i = 0; i < kInt8Values; ++i) count += sizes[i] >= bound ? 1 : 0;
    return count;
  };
  int32_t bound = 0;
  for (int32_t bit = 1 << 30; bit > 0; bit >>= 1)
    if (at_least(bound | bit) >= k) bound |= bit;
  int64_t equal = k - at_least(bound + 1);
  for (int64_t i = 0, found = 0; found < k; ++i) {
    if (sizes[i] < bound || (sizes[i] == bound && equal-- <= 0)) continue;
    into[found++] = static_cast<uint16_t>(i);
  }
}

}  // namespace

extern const CodecLoops codec_loops = {encode_16, decode_16, encode_8,     decode_8,  add2_8,
                                       merge_16,  merge_8,   add_residual, select_top};

}  // namespace lockstep::comm::LOCKSTEP_ISA
