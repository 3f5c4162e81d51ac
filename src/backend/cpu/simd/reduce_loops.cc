// Row and column reductions. See reduce_loops.h.
#include "backend/cpu/simd/reduce_loops.h"

#include "backend/cpu/simd/lanes.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

void row_sum(float* out, const float* x, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols)
    out[r] = sum_lanes(cols, [=](int64_t i, auto lanes) { return load(x + i, lanes); });
}

void row_sum_squares(float* out, const float* x, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols)
    out[r] = sum_lanes(cols, [=](int64_t i, auto lanes) {
      const Vec v = load(x + i, lanes);
      return v * v;
    });
}

void row_dot(float* out, const float* a, const float* b, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, a += cols, b += cols)
    out[r] = sum_lanes(cols, [=](int64_t i, auto lanes) { return load(a + i, lanes) * load(b + i, lanes); });
}

inline uint32_t lane_bits(VecInt condition) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask((__m512i)condition);
#else
  return static_cast<uint32_t>(_mm256_movemask_ps((__m256)condition));
#endif
}

// max(x, a) keeps a when x is NaN, and keeps a NaN once a is one.
inline Vec max_or_nan(Vec a, Vec x) { return x == x ? max(x, a) : x; }

float max_or_nan(const float* x, int64_t n) {
  const Vec lowest = broadcast(-__builtin_inff());
  const auto term = [=](int64_t i, auto lanes) { return load_or(x + i, lanes, lowest); };
  const Vec v = fold_lanes(n, lowest, term, [](Vec a, Vec b) { return max_or_nan(a, b); });
  if (lane_bits(v != v) != 0) return __builtin_nanf("");
  return fold_halves(v, Max{});
}

void row_max(float* out, const float* x, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) out[r] = max_or_nan(x + r * cols, cols);
}

int32_t argmax(const float* x, int64_t n) {
  const float best = max_or_nan(x, n);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    // If there is a NaN, best is one and equals nothing.
    const Vec v = load(x + i);
    const uint32_t hits = lane_bits((v == best) | (v != v));
    if (hits != 0) return static_cast<int32_t>(i + __builtin_ctz(hits));
  }
  for (; i < n; ++i)
    if (x[i] == best || x[i] != x[i]) return static_cast<int32_t>(i);
  return 0;
}

void row_argmax(int32_t* out, const float* x, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) out[r] = argmax(x + r * cols, cols);
}

// Several rows per sweep keep the accumulator in a register between them; the order of additions stays by
// row.
template <int kRows>
void add_rows(float* acc, const float* x, int64_t cols) {
  for_lanes(cols, [=](int64_t i, auto lanes) {
    Vec v = load(acc + i, lanes);
    for (int r = 0; r < kRows; ++r) v += load(x + r * cols + i, lanes);
    store(acc + i, v, lanes);
  });
}

void column_sum(float* acc, const float* x, int64_t rows, int64_t cols) {
  for (; rows >= 8; rows -= 8, x += 8 * cols) add_rows<8>(acc, x, cols);
  for (; rows > 0; --rows, x += cols) add_rows<1>(acc, x, cols);
}

void accumulate(float* acc, const float* x, int64_t n) { add_rows<1>(acc, x, n); }

}  // namespace

extern const ReduceLoops reduce_loops = {row_sum,    row_sum_squares, row_dot,   row_max,
                                         row_argmax, column_sum,      accumulate};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
