// C = A·B (+ C) in f32, cut into tiles that depend on the shape alone; each tile is one single-threaded
// oneDNN call.
//
// oneDNN sums the inner axis of a tile in an order of its own that does not depend on who runs the tile, so
// the bits are the same for any number of threads.
#pragma once
#include <cstdint>

#include "backend/cpu/kernel_def.h"

namespace lockstep::cpu {

struct GemmShape {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
};

struct GemmTiles {
  int64_t rows, columns;  // of a tile of C
};
GemmTiles gemm_tiles(const GemmShape& shape);

// oneDNN generates the code of its products when the first one runs. Called when a kernel is made, so that no
// step has to wait for it.
void prepare_gemm();
// What oneDNN keeps for products of this shape.
KernelMemory gemm_memory(const CpuContext& context, const GemmShape& shape);

// Dense row-major operands; beta is 0 or 1.
void gemm_f32(const CpuContext& context, const GemmShape& shape, const float* a, const float* b, float beta,
              float* c);
// The same for `batch` independent products whose operands lie stride elements apart (stride 0: shared).
void gemm_f32_batched(const CpuContext& context, const GemmShape& shape, int64_t batch, const float* a,
                      int64_t stride_a, const float* b, int64_t stride_b, float beta, float* c,
                      int64_t stride_c);

}  // namespace lockstep::cpu
