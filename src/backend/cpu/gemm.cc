#include "backend/cpu/gemm.h"

#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace lockstep::cpu {
namespace {

// Tiles large enough that packing is a few percent of the arithmetic, small enough that a few threads share
// one product.
constexpr int64_t kTileRows = 512;
constexpr int64_t kTileColumns = 512;
// Tiles that every product should offer, and what a tile must be worth to be a call (about 20 microseconds).
constexpr int64_t kWantedTiles = 8;
constexpr int64_t kMinTileFlops = 2'000'000;
// oneDNN's f32 micro-kernels are 48 columns wide on AVX-512 and 16 on AVX2.
constexpr int64_t kColumnGrain = 48;
constexpr int64_t kRowGrain = 16;

// What the first product leaves behind, of any shape: code for every transposition, and the generators.
// Measured, oneDNN 2.6 with AVX-512: 34 ms and 3.9 MB.
constexpr int64_t kCodeBytes = 3924 * 1024;
// Of the inner axis that oneDNN packs at a time.
constexpr int64_t kPackedDepth = 384;

int64_t round_up(int64_t value, int64_t grain) { return ceil_div(value, grain) * grain; }

struct Operand {
  const float* data;
  int64_t stride;
  bool transposed;
  // The address of the sub-matrix that starts at `outer` along the axis of C that this operand shares.
  const float* at(int64_t outer, bool outer_is_row) const {
    return data + (outer_is_row != transposed ? outer * stride : outer);
  }
};

void run_tile(const GemmShape& shape, int64_t m, int64_t n, const float* a, int64_t lda, const float* b,
              int64_t ldb, float beta, float* c, int64_t ldc) {
  // oneDNN's own OpenMP team would make sums depend on the thread count; the setting belongs to the calling
  // thread.
  omp_set_num_threads(1);
  const dnnl_status_t status = dnnl_sgemm(shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N', m, n,
                                          shape.k, 1.0f, a, lda, b, ldb, beta, c, ldc);
  if (status != dnnl_success) throw DeviceError("dnnl_sgemm failed with status {}", static_cast<int>(status));
}

}  // namespace

GemmTiles gemm_tiles(const GemmShape& shape) {
  int64_t row_pieces = ceil_div(shape.m, kTileRows);
  int64_t column_pieces = ceil_div(shape.n, kTileColumns);
  const auto tile_rows = [&] {
    return std::min(shape.m, round_up(ceil_div(shape.m, row_pieces), kRowGrain));
  };
  const auto tile_columns = [&] {
    return std::min(shape.n, round_up(ceil_div(shape.n, column_pieces), kColumnGrain));
  };
  // Pieces of one size, so that no thread is left with the largest; halve the longer side while tiles are too
  // few.
  while (row_pieces * column_pieces < kWantedTiles &&
         tile_rows() * tile_columns() * shape.k >= kMinTileFlops) {
    if (tile_rows() >= tile_columns() && tile_rows() > kRowGrain)
      row_pieces *= 2;
    else if (tile_columns() > kColumnGrain)
      column_pieces *= 2;
    else
      break;
  }
  return {tile_rows(), tile_columns()};
}

void prepare_gemm() {
  static const bool prepared = [] {
    constexpr int64_t kSide = 16;
    const std::array<float, kSide * kSide> a{};
    std::array<float, kSide * kSide> c{};
    run_tile({kSide, kSide, kSide, false, false}, kSide, kSide, a.data(), kSide, a.data(), kSide, 0.0f,
             c.data(), kSide);
    return true;
  }();
  static_cast<void>(prepared);
}

KernelMemory gemm_memory(const CpuContext& context, const GemmShape& shape) {
  const GemmTiles tiles = gemm_tiles(shape);
  const int64_t packed =
      std::min(shape.k, kPackedDepth) * (tiles.rows + tiles.columns) * static_cast<int64_t>(sizeof(float));
  return {0, kCodeBytes + context.pool.threads() * packed};
}

void gemm_f32_batched(const CpuContext& context, const GemmShape& shape, int64_t batch, const float* a,
                      int64_t stride_a, const float* b, int64_t stride_b, float beta, float* c,
                      int64_t stride_c) {
  const int64_t lda = shape.transpose_a ? shape.m : shape.k;
  const int64_t ldb = shape.transpose_b ? shape.k : shape.n;
  if (shape.k == 0 || shape.m == 0 || shape.n == 0) {
    if (beta == 0.0f)
      for (int64_t i = 0; i < batch; ++i) std::fill_n(c + i * stride_c, shape.m * shape.n, 0.0f);
    return;
  }
  const GemmTiles tiles = gemm_tiles(shape);
  const int64_t row_tiles = ceil_div(shape.m, tiles.rows);
  const int64_t column_tiles = ceil_div(shape.n, tiles.columns);
  context.pool.run(batch * row_tiles * column_tiles, [&](int64_t task) {
    const int64_t item = task / (row_tiles * column_tiles);
    const int64_t row = task / column_tiles % row_tiles * tiles.rows;
    const int64_t column = task % column_tiles * tiles.columns;
    const Operand left{a + item * stride_a, lda, shape.transpose_a};
    const Operand right{b + item * stride_b, ldb, shape.transpose_b};
    run_tile(shape, std::min(tiles.rows, shape.m - row), std::min(tiles.columns, shape.n - column),
             left.at(row, true), lda, right.at(column, false), ldb, beta,
             c + item * stride_c + row * shape.n + column, shape.n);
  });
}

void gemm_f32(const CpuContext& context, const GemmShape& shape, const float* a, const float* b, float beta,
              float* c) {
  gemm_f32_batched(context, shape, 1, a, 0, b, 0, beta, c, 0);
}

}  // namespace lockstep::cpu
