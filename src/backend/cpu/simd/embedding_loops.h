// Embedding tables: rows gathered by id, bags of rows summed, and the gradient of both, summed in the order
// of positions.
//
// The gradient first sorts the ids (backend/cpu/sorted_ids.h): each touched row then adds its own positions
// in order, by itself. Every output element is the sum of its terms in position order, so neither a range of
// rows nor a range of columns changes a bit. Functions that read ids return the first position whose id is
// outside [0, table_rows), at which they stop, or -1.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

enum class RowSum {
  kStore,     // row = 0 + term + term ...
  kContinue,  // row = row + term + term ...: scatter_add
  kAdd,       // row = row + (0 + term + term ...): a microbatch's sum joins the leaf's
};

// Terms of the touched rows: unit u of the sorted ids adds terms[positions[starts[u]]], ... in that order.
struct RowTerms {
  const float* terms;        // [n, cols], or [bags, cols] with term_of
  const int32_t* positions;  // sorted ids' positions
  const int32_t* starts;     // units + 1 entries
  const int32_t* term_of;    // position -> row of terms (its bag); null where they are the same
  const float* weights;      // factor of each row of terms (1 / size of the bag); null for 1
};

struct EmbeddingLoops {
  // out[i, :] = table[ids[i], :] for i in [begin, end).
  int64_t (*gather_i32)(const float* table, int64_t table_rows, int64_t cols, const int32_t* ids, float* out,
                        int64_t begin, int64_t end);
  int64_t (*gather_i64)(const float* table, int64_t table_rows, int64_t cols, const int64_t* ids, float* out,
                        int64_t begin, int64_t end);
  // out[b, :] = sum of table[ids[i], :] over i in [offsets[b], offsets[b + 1]), in order, times 1 / count
  // where mean; an empty bag is zero. Bags [begin, end). offsets is ascending and within ids: the caller's to
  // check.
  int64_t (*bag_i32)(const float* table, int64_t table_rows, int64_t cols, const int32_t* ids,
                     const int32_t* offsets, bool mean, float* out, int64_t begin, int64_t end);
  int64_t (*bag_i64)(const float* table, int64_t table_rows, int64_t cols, const int64_t* ids,
                     const int64_t* offsets, bool mean, float* out, int64_t begin, int64_t end);
  // Rows of units [unit_begin, unit_end), columns [col_begin, col_end): unit u goes to row target[u] of out
  // (the unique ids: a dense table), or to row u where target is null (a compact buffer).
  void (*sum_rows)(const RowTerms& terms, const int32_t* target, int64_t unit_begin, int64_t unit_end,
                   int64_t cols, int64_t col_begin, int64_t col_end, RowSum mode, float* out);
};

namespace avx2 {
extern const EmbeddingLoops embedding_loops;
}
namespace avx512 {
extern const EmbeddingLoops embedding_loops;
}

}  // namespace lockstep::cpu
