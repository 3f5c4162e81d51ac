// Losses: cross_entropy, bce_with_logits and mse, each a sum and a count, and their gradients.
//
// A loss is summed in double over fixed pieces, then over the pieces by one block in a fixed pattern.
#pragma once
#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

struct CrossEntropyShape {
  int64_t rows = 0;
  int64_t classes = 0;
  DType dtype = DType::kF32;
  int32_t ignore = -100;
  float smoothing = 0;
};

// Where a label is out of range: the first such row is written here by the kernel, and whoever waits for the
// step looks. `row` starts as INT64_MAX.
struct BadLabel {
  unsigned long long row;
};

int64_t cross_entropy_workspace(const CrossEntropyShape& shape);
void cross_entropy(cudaStream_t stream, const CrossEntropyShape& shape, const void* logits,
                   const int32_t* labels, float* loss, int64_t* count, float* lse, BadLabel* bad,
                   void* workspace);
// dlogits may be the logits.
void cross_entropy_grad(cudaStream_t stream, const CrossEntropyShape& shape, const float* dloss,
                        const void* logits, const int32_t* labels, const float* lse, void* dlogits);
// Both in one sweep over rows that are still in the cache, for a head that never holds all logits: the
// gradient takes the logits' place, times *dloss. loss and count are added to what is there, in stream order.
void cross_entropy_in_place(cudaStream_t stream, const CrossEntropyShape& shape, const float* dloss,
                            void* logits, const int32_t* labels, float* loss, int64_t* count, float* lse,
                            BadLabel* bad, void* workspace);

int64_t pair_loss_workspace(int64_t count);
// weights may be null. labels_float: labels are f32 whatever the dtype of the logits.
void bce_with_logits(cudaStream_t stream, DType dtype, const void* logits, const void* labels,
                     bool labels_float, const float* weights, int64_t count, float* loss, int64_t* number,
                     void* workspace);
void bce_with_logits_grad(cudaStream_t stream, DType dtype, const float* dloss, const void* logits,
                          const void* labels, bool labels_float, const float* weights, int64_t count,
                          void* dlogits);
void mse(cudaStream_t stream, DType dtype, const void* a, const void* b, int64_t count, float* loss,
         int64_t* number, void* workspace);

}  // namespace lockstep::cuda
