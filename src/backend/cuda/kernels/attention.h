// Attention of our own, forward and backward: for what the library does not do (packed documents, masked
// keys, odd heads, fp32), and to check it against. ops/attention_rule.h says who sees whom.
//
// Every sum has one order: a query walks its keys from the first on; a key walks the query heads that share
// it, and for each of them the queries from the first on. Nothing is added by atomics, and scores are
// computed again in backward.
#pragma once
#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

// Where a tensor [B, rows, heads, D] lies: strides in elements, D contiguous. A packed qkv is three of these.
struct HeadLayout {
  int64_t batch = 0;
  int64_t row = 0;
  int64_t head = 0;
};

struct AttentionShape {
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool causal = false;
  int64_t window = 0;
  float scale = 1;
  DType dtype = DType::kBF16;
  HeadLayout q, k, v, out;                // dq, dk, dv and dout lie like q, k, v and out
  const uint8_t* keys_visible = nullptr;  // [B, S], or null
  const int32_t* documents = nullptr;     // [B, T], or null
};

// lse is f32 [B, H, T].
void attention(cudaStream_t stream, const AttentionShape& shape, const void* q, const void* k, const void* v,
               void* out, float* lse);

int64_t attention_grad_workspace(const AttentionShape& shape);
void attention_grad(cudaStream_t stream, const AttentionShape& shape, const void* dout, const void* q,
                    const void* k, const void* v, const void* out, const float* lse, void* dq, void* dk,
                    void* dv, void* workspace);

// Whether the tensor-core kernels serve the shape; otherwise a plain one does, at a small part of the speed.
bool attention_on_tensor_cores(const AttentionShape& shape);

}  // namespace lockstep::cuda
