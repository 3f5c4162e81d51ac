#include "backend/cpu/ordered_row_sums.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

constexpr int64_t kUnitsPerTask = 16;
// Wide rows are also cut by columns, so that one frequent id does not leave the other threads idle.
constexpr int64_t kColumnsPerTask = 512;
constexpr int64_t kPieceBytes = 256 << 10;

}  // namespace

OrderedRowSums::OrderedRowSums(const CpuContext& context, DType dtype, int64_t term_rows, int64_t cols)
    : context_(context),
      dtype_(dtype),
      cols_(cols),
      staging_(context),
      slot_(staging_.add({dtype, {term_rows, cols}})) {}

int64_t OrderedRowSums::workspace_bytes() const {
  if (dtype_ == DType::kF32) return 0;
  return staging_.bytes() + context_.pool.threads() * cols_ * static_cast<int64_t>(sizeof(float));
}

void OrderedRowSums::run(const SortedIds& sorted, const void* terms, const int32_t* term_of,
                         const float* weights, RowSum mode, void* table, void* workspace) const {
  const RowTerms row_terms{staging_.read(slot_, terms, workspace), sorted.positions.data(),
                           sorted.starts.data(), term_of, weights};
  if (dtype_ == DType::kF32)
    run_f32(row_terms, sorted, mode, static_cast<float*>(table));
  else
    run_converted(row_terms, sorted, mode, table,
                  reinterpret_cast<float*>(static_cast<char*>(workspace) + staging_.bytes()));
}

void OrderedRowSums::run_f32(const RowTerms& terms, const SortedIds& sorted, RowSum mode,
                             float* table) const {
  const auto units = static_cast<int64_t>(sorted.rows.size());
  const int64_t pieces = ceil_div(cols_, kColumnsPerTask);
  context_.pool.run(ceil_div(units, kUnitsPerTask) * pieces, [&](int64_t task) {
    const int64_t unit = task / pieces * kUnitsPerTask;
    const int64_t col = task % pieces * kColumnsPerTask;
    context_.simd.embedding.sum_rows(terms, sorted.rows.data(), unit, std::min(unit + kUnitsPerTask, units),
                                     cols_, col, std::min(col + kColumnsPerTask, cols_), mode, table);
  });
}

void OrderedRowSums::run_converted(const RowTerms& terms, const SortedIds& sorted, RowSum mode, void* table,
                                   float* rows) const {
  const auto units = static_cast<int64_t>(sorted.rows.size());
  context_.pool.run_indexed(ceil_div(units, kUnitsPerTask), [&](int64_t task, int thread) {
    float* row = rows + thread * cols_;
    for (int64_t u = task * kUnitsPerTask; u < std::min((task + 1) * kUnitsPerTask, units); ++u) {
      const int64_t first = sorted.rows[static_cast<size_t>(u)] * cols_;
      if (mode != RowSum::kStore) load_floats(context_, dtype_, table, first, cols_, row);
      RowTerms one = terms;
      one.starts += u;
      context_.simd.embedding.sum_rows(one, nullptr, 0, 1, cols_, 0, cols_, mode, row);
      store_floats(context_, dtype_, row, table, first, cols_);
    }
  });
}

void zero_bytes(const CpuContext& context, void* to, int64_t bytes) {
  for_rows(context, bytes, kPieceBytes, [&](int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(to) + begin, 0, static_cast<size_t>(end - begin));
  });
}

void copy_bytes(const CpuContext& context, void* to, const void* from, int64_t bytes) {
  if (to == from) return;
  for_rows(context, bytes, kPieceBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace lockstep::cpu
