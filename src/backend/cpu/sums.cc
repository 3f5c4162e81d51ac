#include "backend/cpu/sums.h"

#include <algorithm>

#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

constexpr int64_t kWidestRange = 8192;

int64_t partials_of(const SumShape& shape) {
  return std::max<int64_t>(1, ceil_div(shape.reduced, shape.inner == 1 ? kSumPiece : kSumBlock));
}

// Runs body(unit, thread) over units of about `elements` terms each, several units to a task where they are
// small.
template <typename Body>
void for_units(const CpuContext& context, int64_t units, int64_t elements, const Body& body) {
  const int64_t grain = rows_per_task(elements);
  context.pool.run_indexed(ceil_div(units, grain), [&](int64_t task, int thread) {
    const int64_t end = std::min(units, (task + 1) * grain);
    for (int64_t unit = task * grain; unit < end; ++unit) body(unit, thread);
  });
}

// Whole rows, as many at once as the source gives.
void sum_short_rows(const CpuContext& context, const SumShape& shape, const TermSource& source, float* out) {
  const int64_t columns = shape.reduced;
  const int64_t most =
      columns == 0 ? shape.outer : std::min(rows_per_task(columns), source.largest() / columns);
  const int64_t rows_at_once = std::max<int64_t>(1, most);
  context.pool.run_indexed(ceil_div(shape.outer, rows_at_once), [&](int64_t task, int thread) {
    const int64_t begin = task * rows_at_once;
    const int64_t rows = std::min(rows_at_once, shape.outer - begin);
    const float* terms = columns == 0 ? nullptr : source.terms(begin * columns, rows * columns, thread);
    // A lone term passes through unchanged: 0 + -0 would lose its sign.
    if (columns == 1)
      std::copy_n(terms, rows, out + begin);
    else
      context.simd.reduce.row_sum(out + begin, terms, rows, columns);
  });
}

void sum_pieces(const CpuContext& context, const SumShape& shape, int64_t pieces, const TermSource& source,
                float* partials) {
  for_units(context, shape.outer * pieces, kSumPiece, [&](int64_t unit, int thread) {
    const int64_t begin = unit % pieces * kSumPiece;
    const int64_t count = std::min(kSumPiece, shape.reduced - begin);
    const float* terms = source.terms(unit / pieces * shape.reduced + begin, count, thread);
    context.simd.reduce.row_sum(partials + unit, terms, 1, count);
  });
}

// Narrow rows are taken several at a time; wide ones are cut in column ranges, so that the accumulators stay
// in the first caches and few but wide rows still occupy every thread. Columns do not meet: the ranges change
// no bit.
void sum_blocks(const CpuContext& context, const SumShape& shape, int64_t blocks, const TermSource& source,
                float* partials) {
  const int64_t width = std::min({shape.inner, source.largest(), kWidestRange});
  const int64_t ranges = ceil_div(shape.inner, width);
  const int64_t rows_at_once = ranges > 1 ? 1 : source.largest() / width;
  const int64_t block_terms = std::min(shape.reduced, kSumBlock) * width;
  for_units(context, shape.outer * blocks * ranges, block_terms, [&](int64_t unit, int thread) {
    const int64_t column = unit % ranges * width;
    const int64_t columns = std::min(width, shape.inner - column);
    const int64_t block = unit / ranges;  // of all blocks of all outer indices
    const int64_t first = block % blocks * kSumBlock;
    const int64_t last = std::min(first + kSumBlock, shape.reduced);
    float* sums = partials + block * shape.inner + column;
    std::fill_n(sums, columns, 0.0f);
    for (int64_t row = first; row < last; row += rows_at_once) {
      const int64_t rows = std::min(rows_at_once, last - row);
      const int64_t begin = (block / blocks * shape.reduced + row) * shape.inner + column;
      context.simd.reduce.column_sum(sums, source.terms(begin, rows * columns, thread), rows, columns);
    }
  });
}

}  // namespace

std::vector<SumShape> sum_passes(const Shape& shape, const std::vector<int>& axes) {
  std::vector<SumShape> passes;
  int64_t inner = 1;
  for (int axis = shape.rank(); axis > 0;) {
    const auto reduced = [&](int a) { return std::find(axes.begin(), axes.end(), a) != axes.end(); };
    if (!reduced(--axis)) {
      inner *= shape[axis];
      continue;
    }
    int64_t extent = shape[axis];
    while (axis > 0 && (reduced(axis - 1) || shape[axis - 1] == 1)) extent *= shape[--axis];
    if (extent != 1) passes.push_back({shape.product(0, axis), extent, inner});
  }
  if (passes.empty()) passes.push_back({shape.numel(), 1, 1});
  return passes;
}

int64_t sum_workspace(const SumShape& shape) {
  const int64_t partials = partials_of(shape);
  if (partials == 1) return 0;
  const SumShape next{shape.outer, partials, shape.inner};
  return next.numel() + sum_workspace(next);
}

void sum_terms(const CpuContext& context, const SumShape& shape, const TermSource& source, float* out,
               float* workspace) {
  if (shape.outer == 0 || shape.inner == 0) return;
  const int64_t partials = partials_of(shape);
  float* to = partials == 1 ? out : workspace;
  if (shape.inner > 1)
    sum_blocks(context, shape, partials, source, to);
  else if (partials > 1)
    sum_pieces(context, shape, partials, source, to);
  else
    sum_short_rows(context, shape, source, to);
  if (partials == 1) return;
  const SumShape next{shape.outer, partials, shape.inner};
  sum_terms(context, next, FloatTerms(workspace), out, workspace + next.numel());
}

}  // namespace lockstep::cpu
