#include "backend/cuda/kernels/attention.h"

#include "backend/cuda/kernels/attention_kernels.h"

namespace lockstep::cuda {
namespace {

bool packs(const HeadLayout& layout) {
  return layout.batch % 8 == 0 && layout.row % 8 == 0 && layout.head % 8 == 0;
}

bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

}  // namespace

bool attention_on_tensor_cores(const AttentionShape& s) {
  return s.dtype != DType::kF32 && s.head_dim % 8 == 0 && s.head_dim <= 128 && packs(s.q) && packs(s.k) &&
         packs(s.v) && packs(s.out);
}

void attention(cudaStream_t stream, const AttentionShape& s, const void* q, const void* k, const void* v,
               void* out, float* lse) {
  require_that(s.head_dim <= 256, "heads of at most 256");
  if (s.batch * s.queries * s.heads == 0) return;
  const bool tiled = attention_on_tensor_cores(s) && aligned(q) && aligned(k) && aligned(v) && aligned(out);
  (tiled ? tiled_attention : plain_attention)(stream, s, q, k, v, out, lse);
}

int64_t attention_grad_workspace(const AttentionShape& s) {
  return s.batch * s.heads * s.queries * static_cast<int64_t>(sizeof(float));
}

void attention_grad(cudaStream_t stream, const AttentionShape& s, const void* dout, const void* q,
                    const void* k, const void* v, const void* out, const float* lse, void* dq, void* dk,
                    void* dv, void* workspace) {
  require_that(s.head_dim <= 256, "heads of at most 256");
  if (s.batch * s.heads == 0) return;
  auto* delta = static_cast<float*>(workspace);
  if (s.queries > 0) attention_delta(stream, s, dout, out, delta);
  const bool tiled = attention_on_tensor_cores(s) && aligned(q) && aligned(k) && aligned(v) &&
                     aligned(dout) && aligned(dq) && aligned(dk) && aligned(dv);
  (tiled ? tiled_attention_grad : plain_attention_grad)(stream, s, dout, q, k, v, lse, delta, dq, dk, dv);
}

}  // namespace lockstep::cuda
