#include "cli/simd/movement_loops.h"

#include <immintrin.h>

namespace lockstep::movement::LOCKSTEP_ISA {
namespace {

constexpr int64_t kLine = 16;     // floats
constexpr int64_t kPage = 1024;   // floats
constexpr int64_t kAhead = 4096;  // bytes: past the page, which is as far as the processor looks by itself

#ifdef __AVX512F__
struct Line {
  __m512 all;
};
Line load(const float* from) { return {_mm512_load_ps(from)}; }
Line plus(Line a, Line b) { return {_mm512_add_ps(a.all, b.all)}; }
void store(float* into, Line line) { _mm512_store_ps(into, line.all); }
void store_past(float* into, Line line) { _mm512_stream_ps(into, line.all); }
#else
struct Line {
  __m256 low, high;
};
Line load(const float* from) { return {_mm256_load_ps(from), _mm256_load_ps(from + 8)}; }
Line plus(Line a, Line b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
void store(float* into, Line line) {
  _mm256_store_ps(into, line.low);
  _mm256_store_ps(into + 8, line.high);
}
void store_past(float* into, Line line) {
  _mm256_stream_ps(into, line.low);
  _mm256_stream_ps(into + 8, line.high);
}
#endif

void ask_for(const float* line) { _mm_prefetch(reinterpret_cast<const char*>(line) + kAhead, _MM_HINT_T0); }

// kCount 0: as many as `count` says.
template <int kCount, bool kPast, bool kAsks>
void lines(float* const* buffers, int64_t count, int64_t n) {
  const int64_t all = kCount > 0 ? kCount : count;
  // In registers: a store might change the array, for all that the compiler knows.
  float* own[kCount > 0 ? kCount : 1];
  for (int k = 0; k < kCount; ++k) own[k] = buffers[k];
  float* const* const at = kCount > 0 ? own : buffers;
  for (int64_t i = 0; i < n; i += kLine) {
    Line sum = load(at[0] + i);
    if (kAsks) ask_for(at[0] + i);
    for (int64_t k = 1; k < all; ++k) {
      sum = plus(sum, load(at[k] + i));
      if (kAsks) ask_for(at[k] + i);
    }
    for (int64_t k = 0; k < all; ++k) {
      if (kPast)
        store_past(at[k] + i, sum);
      else
        store(at[k] + i, sum);
    }
  }
}

template <int kCount>
void sum_lines_of(float* const* buffers, int64_t count, int64_t n, bool past, bool ahead) {
  if (past)
    ahead ? lines<kCount, true, true>(buffers, count, n) : lines<kCount, true, false>(buffers, count, n);
  else
    ahead ? lines<kCount, false, true>(buffers, count, n) : lines<kCount, false, false>(buffers, count, n);
  if (past) _mm_sfence();
}

void sum_lines(float* const* buffers, int64_t count, int64_t n, bool past, bool ahead) {
  switch (count) {
    case 2: return sum_lines_of<2>(buffers, count, n, past, ahead);
    case 4: return sum_lines_of<4>(buffers, count, n, past, ahead);
    default: return sum_lines_of<0>(buffers, count, n, past, ahead);
  }
}

// One page of the sum stays in the nearest cache; the buffers are read up to four at a time.
void sum_page(float* sum, float* const* buffers, int64_t count, int64_t from, int64_t n, bool ahead) {
  for (int64_t k = 0; k < count; k += 4) {
    const int64_t some = count - k < 4 ? count - k : 4;
    for (int64_t i = 0; i < n; i += kLine) {
      Line line = load(buffers[k] + from + i);
      for (int64_t j = 1; j < some; ++j) line = plus(line, load(buffers[k + j] + from + i));
      for (int64_t j = 0; ahead && j < some; ++j) ask_for(buffers[k + j] + from + i);
      store(sum + i, k == 0 ? line : plus(line, load(sum + i)));
    }
  }
}

void sum_pages(float* const* buffers, int64_t count, int64_t n, bool past, bool ahead) {
  alignas(64) float sum[kPage];
  for (int64_t from = 0; from < n; from += kPage) {
    const int64_t some = n - from < kPage ? n - from : kPage;
    sum_page(sum, buffers, count, from, some, ahead);
    for (int64_t k = 0; k < count; ++k)
      for (int64_t i = 0; i < some; i += kLine) {
        if (past)
          store_past(buffers[k] + from + i, load(sum + i));
        else
          store(buffers[k] + from + i, load(sum + i));
      }
  }
  if (past) _mm_sfence();
}

void sum_to_first(float* const* buffers, int64_t count, int64_t n) {
  for (int64_t from = 0; from < n; from += kPage) {
    const int64_t some = n - from < kPage ? n - from : kPage;
    sum_page(buffers[0] + from, buffers, count, from, some, false);
  }
}

void copy(float* into, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; i += kLine) store(into + i, load(from + i));
}

}  // namespace

extern const MovementLoops movement_loops = {sum_lines, sum_pages, sum_to_first, copy};

}  // namespace lockstep::movement::LOCKSTEP_ISA
