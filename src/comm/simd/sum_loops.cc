#include "comm/simd/sum_loops.h"

#include <immintrin.h>
#include <string.h>

namespace lockstep::comm::LOCKSTEP_ISA {
namespace {

void add2(float* into, const float* a, const float* b, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) into[i] = a[i] + b[i];
}

float wide(uint16_t bits) { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }

uint16_t narrow(float x) {
  const auto bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return static_cast<uint16_t>(x != x ? 0x7fc0u : rounded);
}

void add2_16(uint16_t* into, const uint16_t* a, const uint16_t* b, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) into[i] = narrow(wide(a[i]) + wide(b[i]));
}

void add4_16(uint16_t* into, const uint16_t* a, const uint16_t* b, const uint16_t* c, const uint16_t* d,
             int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    into[i] = narrow(wide(narrow(wide(a[i]) + wide(b[i]))) + wide(narrow(wide(c[i]) + wide(d[i]))));
}

// Counts wrap around rather than being undefined when they overflow.
void add2_counts(int64_t* into, const int64_t* a, const int64_t* b, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    into[i] = static_cast<int64_t>(static_cast<uint64_t>(a[i]) + static_cast<uint64_t>(b[i]));
}

void add4(float* into, const float* a, const float* b, const float* c, const float* d, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) into[i] = (a[i] + b[i]) + (c[i] + d[i]);
}

#ifdef __AVX512F__
using Lanes = __m512;
Lanes load(const float* from) { return _mm512_loadu_ps(from); }
Lanes plus(Lanes a, Lanes b) { return _mm512_add_ps(a, b); }
void store(float* into, Lanes lanes) { _mm512_storeu_ps(into, lanes); }
void store_past(float* into, Lanes lanes) { _mm512_stream_ps(into, lanes); }
#else
using Lanes = __m256;
Lanes load(const float* from) { return _mm256_loadu_ps(from); }
Lanes plus(Lanes a, Lanes b) { return _mm256_add_ps(a, b); }
void store(float* into, Lanes lanes) { _mm256_storeu_ps(into, lanes); }
void store_past(float* into, Lanes lanes) { _mm256_stream_ps(into, lanes); }
#endif
constexpr int64_t kLanes = sizeof(Lanes) / sizeof(float);
constexpr int64_t kLineLanes = 16 / kLanes;  // vectors in a line: all of them are read before one is written

template <bool kFour, bool kPast>
void sum_to_all(float* const* outputs, int64_t output_count, const float* const* operands, int64_t n) {
  const float* a = operands[0];
  const float* b = operands[1];
  const float* c = kFour ? operands[2] : a;
  const float* d = kFour ? operands[3] : b;
  for (int64_t i = 0; i < n; i += 16) {
    Lanes line[kLineLanes];
    for (int64_t j = 0; j < kLineLanes; ++j) {
      const int64_t at = i + j * kLanes;
      line[j] = plus(load(a + at), load(b + at));
      if (kFour) line[j] = plus(line[j], plus(load(c + at), load(d + at)));
    }
    for (int64_t k = 0; k < output_count; ++k)
      for (int64_t j = 0; j < kLineLanes; ++j) {
        if (kPast)
          store_past(outputs[k] + i + j * kLanes, line[j]);
        else
          store(outputs[k] + i + j * kLanes, line[j]);
      }
  }
}

template <bool kPast>
void sum_to_all(float* const* outputs, int64_t output_count, const float* const* operands,
                int64_t operand_count, int64_t n) {
  if (operand_count == 4)
    sum_to_all<true, kPast>(outputs, output_count, operands, n);
  else
    sum_to_all<false, kPast>(outputs, output_count, operands, n);
}

void copy(void* into, const void* from, int64_t bytes) {
  auto* to = static_cast<char*>(into);
  const auto* source = static_cast<const char*>(from);
  int64_t i = 0;
  for (; i + 64 <= bytes; i += 64) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + i));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + i + 32));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i + 32), high);
  }
  memcpy(to + i, source + i, static_cast<size_t>(bytes - i));
}

void stream(void* into, const void* from, int64_t bytes) {
  auto* to = static_cast<char*>(into);
  const auto* source = static_cast<const char*>(from);
  int64_t head = -reinterpret_cast<intptr_t>(to) & 63;
  if (head > bytes) head = bytes;
  memcpy(to, source, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + 64 <= bytes; i += 64) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + i));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + i + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i + 32), high);
  }
  memcpy(to + i, source + i, static_cast<size_t>(bytes - i));
}

}  // namespace

extern const SumLoops sum_loops = {
    add2, add4, add2_16, add4_16, add2_counts, sum_to_all<false>, sum_to_all<true>, copy, stream};

}  // namespace lockstep::comm::LOCKSTEP_ISA
