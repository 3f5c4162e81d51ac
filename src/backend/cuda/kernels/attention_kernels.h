// The two sets of kernels behind attention.h: plain arithmetic, and tensor cores for 16-bit heads.
#pragma once
#include "backend/cuda/kernels/attention.h"

namespace lockstep::cuda {

void plain_attention(cudaStream_t stream, const AttentionShape& shape, const void* q, const void* k,
                     const void* v, void* out, float* lse);
void plain_attention_grad(cudaStream_t stream, const AttentionShape& shape, const void* dout, const void* q,
                          const void* k, const void* v, const float* lse, const float* delta, void* dq,
                          void* dk, void* dv);

void tiled_attention(cudaStream_t stream, const AttentionShape& shape, const void* q, const void* k,
                     const void* v, void* out, float* lse);
void tiled_attention_grad(cudaStream_t stream, const AttentionShape& shape, const void* dout, const void* q,
                          const void* k, const void* v, const float* lse, const float* delta, void* dq,
                          void* dk, void* dv);

// delta [B, H, T] = sum over D of dout * out.
void attention_delta(cudaStream_t stream, const AttentionShape& shape, const void* dout, const void* out,
                     float* delta);

}  // namespace lockstep::cuda
