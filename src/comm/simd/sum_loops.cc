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

extern const SumLoops sum_loops = {add2<float>, add4, add2<double>, add2_counts, stream};

}  // namespace lockstep::comm::LOCKSTEP_ISA
