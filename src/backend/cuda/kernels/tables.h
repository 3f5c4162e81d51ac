// Rows of tables: embedding, embedding_bag and gather; and their gradients as ordered sums.
//
// A gradient sorts the ids once (stable, by id), then every row that an id names adds its own terms in the
// order of positions. A row with many terms is summed in pieces of 128, which are added in order: the cut is
// part of the bits.
#pragma once
#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

// An id outside the table: the first such position, for whoever waits for the step. `position` starts as
// UINT64_MAX.
struct BadId {
  unsigned long long position;
};

struct Ids {
  const void* data;
  bool wide;  // i64, else i32
  int64_t count;
  int64_t table_rows;
  int64_t ignore;  // an id that counts for nothing; -1 where there is none
};

// out[outer, i, inner] = table[outer, ids[i], inner]; elements of element_bytes. Bad ids give zeros.
void gather_rows(cudaStream_t stream, const Ids& ids, int64_t element_bytes, int64_t outer, int64_t inner,
                 const void* table, void* out, BadId* bad);

// Bags of `length` ids each: out[b] = sum or mean of the rows, in order.
void embedding_bag(cudaStream_t stream, const Ids& ids, int64_t length, bool mean, DType dtype,
                   int64_t columns, const void* table, void* out, BadId* bad);

struct SortedIds {
  const int32_t* rows;       // [count] ids in rising order; table_rows where ignored or bad
  const int32_t* positions;  // [count] where each stood
  const int32_t* units;      // [count] how many distinct rows come before the one at i
};

int64_t sort_ids_workspace(const Ids& ids);
SortedIds sort_ids(cudaStream_t stream, const Ids& ids, void* workspace, BadId* bad);

enum class RowMode : uint8_t { kStore, kAdd };

struct RowSums {
  DType dtype = DType::kF32;  // of terms and table
  int64_t columns = 0;
  int64_t terms_per_row = 1;       // position p takes term row p / terms_per_row: the length of a bag
  const float* weights = nullptr;  // one per term row, or null
  RowMode mode = RowMode::kStore;
  bool by_unit = false;  // the n-th distinct row goes to row n of the result: row_gradient
};

int64_t row_sums_workspace(const Ids& ids, const RowSums& sums);
// Rows that no id names are left alone.
void row_sums(cudaStream_t stream, const Ids& ids, const SortedIds& sorted, const RowSums& sums,
              const void* terms, void* table, void* workspace);

// The ids of units in rising order, then -1.
void unit_ids(cudaStream_t stream, const Ids& ids, const SortedIds& sorted, int32_t* row_ids);
// 1 / number of ids in each bag that count, 0 for an empty one.
void bag_weights(cudaStream_t stream, const Ids& ids, int64_t length, float* weights);

}  // namespace lockstep::cuda
