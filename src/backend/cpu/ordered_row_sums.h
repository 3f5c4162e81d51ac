// OrderedRowSums: rows of a table that each add up their own terms in index order, in parallel over rows and
// columns.
//
// Sums are in f32 whatever the storage; a 16-bit row is read and rounded once.
#pragma once
#include "backend/cpu/float_staging.h"
#include "backend/cpu/simd/embedding_loops.h"
#include "backend/cpu/sorted_ids.h"

namespace lockstep::cpu {

class OrderedRowSums {
 public:
  // Terms are [term_rows, cols] of dtype, and so are the rows of the table.
  OrderedRowSums(const CpuContext& context, DType dtype, int64_t term_rows, int64_t cols);

  int64_t workspace_bytes() const;

  // Row sorted.rows[u] of table takes the terms at the unit's positions. term_of and weights as in RowTerms,
  // or null.
  void run(const SortedIds& sorted, const void* terms, const int32_t* term_of, const float* weights,
           RowSum mode, void* table, void* workspace) const;

 private:
  void run_f32(const RowTerms& terms, const SortedIds& sorted, RowSum mode, float* table) const;
  void run_converted(const RowTerms& terms, const SortedIds& sorted, RowSum mode, void* table,
                     float* rows) const;

  CpuContext context_;
  DType dtype_;
  int64_t cols_;
  FloatStaging staging_;
  int slot_;
};

// Parallel fills and copies in pieces of fixed size.
void zero_bytes(const CpuContext& context, void* to, int64_t bytes);
void copy_bytes(const CpuContext& context, void* to, const void* from, int64_t bytes);

}  // namespace lockstep::cpu
