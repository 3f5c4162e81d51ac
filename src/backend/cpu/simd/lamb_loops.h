// LAMB (arXiv 1904.00962) on one tensor of n elements: moments and raw update with the parts of two norms,
// then the step scaled by the trust ratio, which the caller forms from the parts added in index order.
#pragma once
#include <cstdint>

#include "backend/cpu/simd/norm2_loops.h"

namespace lockstep::cpu {

struct LambStep {
  float grad_scale;
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float inv_bias1;       // 1 / (1 - beta1^t)
  float inv_sqrt_bias2;  // 1 / sqrt(1 - beta2^t)
  float eps;
  float weight_decay;
};

struct LambLoops {
  // u = (m / bias1) / (sqrt(v) / sqrt(bias2) + eps) + weight_decay p over blocks [block_begin, block_end) of
  // kNormBlock elements; p_squares[b] and u_squares[b] are the blocks' sums of squares. u may be g.
  void (*moments)(const float* p, float* m, float* v, const float* g, float* u, int64_t n,
                  int64_t block_begin, int64_t block_end, const LambStep& step, double* p_squares,
                  double* u_squares);
  // p -= lr_trust * u over elements [begin, end), where lr_trust = lr * trust ratio.
  void (*apply)(float* p, const float* u, uint16_t* p_bf16, int64_t begin, int64_t end, float lr_trust);
};

namespace avx2 {
extern const LambLoops lamb_loops;
}
namespace avx512 {
extern const LambLoops lamb_loops;
}

}  // namespace lockstep::cpu
