#include "comm/simd/sum_loops.h"

#include <immintrin.h>
#include <string.h>

namespace lockstep::comm::LOCKSTEP_ISA {
namespace {

template <typename T>
void add2(T* into, const T* a, const T* b, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) into[i] = a[i] + b[i];
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

template <bool kFour>
void sum_to_all(float* const* outputs, int64_t output_count, const float* const* operands, int64_t n) {
  const float* a = operands[0];
  const float* b = operands[1];
  const float* c = kFour ? operands[2] : a;
  const float* d = kFour ? operands[3] : b;
  for (int64_t i = 0; i < n; i += 16) {
    __m256 low = _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
    __m256 high = _mm256_add_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8));
    if (kFour) {
      low = _mm256_add_ps(low, _mm256_add_ps(_mm256_loadu_ps(c + i), _mm256_loadu_ps(d + i)));
      high = _mm256_add_ps(high, _mm256_add_ps(_mm256_loadu_ps(c + i + 8), _mm256_loadu_ps(d + i + 8)));
    }
    for (int64_t k = 0; k < output_count; ++k) {
      _mm256_stream_ps(outputs[k] + i, low);
      _mm256_stream_ps(outputs[k] + i + 8, high);
    }
  }
}

void sum_to_all(float* const* outputs, int64_t output_count, const float* const* operands,
                int64_t operand_count, int64_t n) {
  if (operand_count == 4)
    sum_to_all<true>(outputs, output_count, operands, n);
  else
    sum_to_all<false>(outputs, output_count, operands, n);
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

extern const SumLoops sum_loops = {add2<float>, add4, add2<double>, add2_counts, sum_to_all, copy, stream};

}  // namespace lockstep::comm::LOCKSTEP_ISA
