#include "backend/cpu/simd/embedding_loops.h"

#include "backend/cpu/simd/each_vec.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// Columns summed together in registers: the list of positions is walked once per tile.
constexpr int kTile = 8;

template <class Id>
inline bool valid(Id id, int64_t table_rows) {
  return id >= 0 && static_cast<int64_t>(id) < table_rows;
}

template <class Id>
int64_t gather(const float* table, int64_t table_rows, int64_t cols, const Id* ids, float* out, int64_t begin,
               int64_t end) {
  constexpr int64_t kAhead = 4;
  for (int64_t i = begin; i < end; ++i) {
    if (!valid(ids[i], table_rows)) return i;
    if (i + kAhead < end && valid(ids[i + kAhead], table_rows))
      __builtin_prefetch(table + static_cast<int64_t>(ids[i + kAhead]) * cols);
    const float* from = table + static_cast<int64_t>(ids[i]) * cols;
    float* to = out + i * cols;
    each_vec(0, cols, [=](int64_t c, auto lanes) { store(to + c, load(from + c, lanes), lanes); });
  }
  return -1;
}

// kVecs Vecs of one row of the output, from column c: row_of(k) is the k-th term's row, weight_of(k) its
// factor.
template <int kVecs, class Lanes, class RowOf, class WeightOf>
inline void sum_tile(float* to, Lanes lanes, RowSum mode, int64_t count, float scale, RowOf row_of,
                     WeightOf weight_of) {
  Vec sum[kVecs];
  for (int j = 0; j < kVecs; ++j) sum[j] = mode == RowSum::kContinue ? load(to + j * kLanes, lanes) : zero();
  for (int64_t k = 0; k < count; ++k) {
    const float* from = row_of(k);
    const Vec weight = broadcast(weight_of(k));
    for (int j = 0; j < kVecs; ++j) sum[j] = sum[j] + load(from + j * kLanes, lanes) * weight;
  }
  for (int j = 0; j < kVecs; ++j) {
    Vec total = sum[j] * broadcast(scale);
    if (mode == RowSum::kAdd) total = load(to + j * kLanes, lanes) + total;
    store(to + j * kLanes, total, lanes);
  }
}

// Columns [begin, end) of the row `to`; row_of(k) gives the start of the k-th term's row.
template <class RowOf, class WeightOf>
inline void sum_row(float* to, int64_t begin, int64_t end, RowSum mode, int64_t count, float scale,
                    RowOf row_of, WeightOf weight_of) {
  int64_t c = begin;
  for (; c + kTile * kLanes <= end; c += kTile * kLanes)
    sum_tile<kTile>(
        to + c, AllLanes{}, mode, count, scale, [=](int64_t k) { return row_of(k) + c; }, weight_of);
  each_vec(c, end, [=](int64_t i, auto lanes) {
    sum_tile<1>(
        to + i, lanes, mode, count, scale, [=](int64_t k) { return row_of(k) + i; }, weight_of);
  });
}

template <class Id>
int64_t bag(const float* table, int64_t table_rows, int64_t cols, const Id* ids, const Id* offsets, bool mean,
            float* out, int64_t begin, int64_t end) {
  for (int64_t b = begin; b < end; ++b) {
    const int64_t first = offsets[b], last = offsets[b + 1];
    for (int64_t i = first; i < last; ++i)
      if (!valid(ids[i], table_rows)) return i;
    const float scale = mean && last > first ? 1.0f / static_cast<float>(last - first) : 1.0f;
    sum_row(
        out + b * cols, 0, cols, RowSum::kStore, last - first, scale,
        [=](int64_t k) { return table + static_cast<int64_t>(ids[first + k]) * cols; },
        [](int64_t) { return 1.0f; });
  }
  return -1;
}

void sum_rows(const RowTerms& terms_in, const int32_t* target, int64_t unit_begin, int64_t unit_end,
              int64_t cols, int64_t col_begin, int64_t col_end, RowSum mode, float* out) {
  const RowTerms t = terms_in;
  for (int64_t unit = unit_begin; unit < unit_end; ++unit) {
    const int32_t* positions = t.positions + t.starts[unit];
    const int64_t count = t.starts[unit + 1] - t.starts[unit];
    float* to = out + (target ? int64_t{target[unit]} : unit) * cols;
    const auto term = [=](int64_t k) -> int64_t {
      return t.term_of ? t.term_of[positions[k]] : positions[k];
    };
    sum_row(
        to, col_begin, col_end, mode, count, 1.0f, [=](int64_t k) { return t.terms + term(k) * cols; },
        [=](int64_t k) { return t.weights ? t.weights[term(k)] : 1.0f; });
  }
}

}  // namespace

extern const EmbeddingLoops embedding_loops = {gather<int32_t>, gather<int64_t>, bag<int32_t>, bag<int64_t>,
                                               sum_rows};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
