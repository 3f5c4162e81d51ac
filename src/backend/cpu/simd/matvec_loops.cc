// A row times a matrix. See matvec_loops.h.
#include "backend/cpu/simd/matvec_loops.h"

#include "backend/cpu/simd/convert.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

template <class Lanes>
inline Vec load_as_float(const float* p, Lanes lanes) {
  return load(p, lanes);
}
template <class Lanes>
inline Vec load_as_float(const uint16_t* p, Lanes lanes) {
  return load_bf16(p, lanes);
}

// One row at a time is one stream of addresses, which the hardware reads ahead; eight sums hide the latency
// of the multiply-add.
constexpr int kSums = 8;

template <class Stored>
inline float dot(const float* x, const Stored* w, int64_t k) {
  Vec sums[kSums];
  for (Vec& sum : sums) sum = zero();
  int64_t i = 0;
  for (; i + kSums * kLanes <= k; i += kSums * kLanes)
    for (int s = 0; s < kSums; ++s)
      sums[s] = fma(load(x + i + s * kLanes), load_as_float(w + i + s * kLanes, AllLanes{}), sums[s]);
  for (; i + kLanes <= k; i += kLanes) sums[0] = fma(load(x + i), load_as_float(w + i, AllLanes{}), sums[0]);
  if (i < k) {
    const FirstLanes tail{k - i};
    sums[1] = fma(load(x + i, tail), load_as_float(w + i, tail), sums[1]);
  }
  for (int half = kSums / 2; half > 0; half /= 2)
    for (int s = 0; s < half; ++s) sums[s] += sums[s + half];
  return fold_halves(sums[0], Add{});
}

template <class Stored>
void rows(float* out, const float* x, const Stored* w, int64_t k, int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) out[n] = dot(x, w + n * k, k);
}

// Columns that one sweep over the rows keeps the sums of in registers.
constexpr int kVecs = 8;
constexpr int64_t kWidth = kVecs * kLanes;
// Rows that the hardware is asked for ahead: they lie a whole row of the matrix apart, on pages of their own.
constexpr int64_t kAhead = 8;

template <class Stored>
inline void wide_columns(float* out, const float* x, const Stored* w, int64_t k, int64_t n) {
  Vec sums[kVecs];
  for (Vec& sum : sums) sum = zero();
  for (int64_t i = 0; i < k; ++i) {
    const Stored* row = w + i * n;
    for (int64_t line = 0; line < kWidth; line += 64 / static_cast<int64_t>(sizeof(Stored)))
      __builtin_prefetch(row + kAhead * n + line);
    const Vec factor = broadcast(x[i]);
    for (int v = 0; v < kVecs; ++v)
      sums[v] = fma(factor, load_as_float(row + v * kLanes, AllLanes{}), sums[v]);
  }
  for (int v = 0; v < kVecs; ++v) store(out + v * kLanes, sums[v]);
}

template <class Stored, class Lanes>
inline void few_columns(float* out, const float* x, const Stored* w, int64_t k, int64_t n, Lanes lanes) {
  Vec sum = zero();
  for (int64_t i = 0; i < k; ++i) sum = fma(broadcast(x[i]), load_as_float(w + i * n, lanes), sum);
  store(out, sum, lanes);
}

template <class Stored>
void columns(float* out, const float* x, const Stored* w, int64_t k, int64_t n, int64_t begin, int64_t end) {
  int64_t c = begin;
  for (; c + kWidth <= end; c += kWidth) wide_columns(out + c, x, w + c, k, n);
  for (; c + kLanes <= end; c += kLanes) few_columns(out + c, x, w + c, k, n, AllLanes{});
  if (c < end) few_columns(out + c, x, w + c, k, n, FirstLanes{end - c});
}

}  // namespace

extern const MatvecLoops matvec_loops = {rows<float>, rows<uint16_t>, columns<float>, columns<uint16_t>};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
