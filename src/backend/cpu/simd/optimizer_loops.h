// Optimizers that update each element by itself: SGD, Adam, AdamW, Lion, over elements [begin, end) of flat
// buffers, in one pass over memory.
//
// The gradient read is multiplied by grad_scale on the fly (the clip factor over the count of the global
// batch). p_bf16 receives the new parameter rounded to bf16, or is null. SGD, Adam and AdamW follow PyTorch's
// formulas; multiply-adds are fused. Results do not depend on how a buffer is cut into ranges. LAMB and
// Adafactor need norms and stand in files of their own.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

struct SgdStep {
  float grad_scale;
  float lr;
  float momentum;
  float weight_decay;
  bool nesterov;
};

// The constants of one step of Adam or AdamW; backend/cpu/optimizer_steps.h makes them.
struct AdamStep {
  float grad_scale;
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float inv_sqrt_bias2;  // 1 / sqrt(1 - beta2^t)
  float eps;
  float step_size;     // lr / (1 - beta1^t)
  float weight_decay;  // Adam: added to the gradient, times the parameter
  float decay;         // AdamW: multiplies the parameter first, 1 - lr * weight_decay
};

struct LionStep {
  float grad_scale;
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float lr;
  float decay;  // 1 - lr * weight_decay
};

struct OptimizerLoops {
  // g' = g * grad_scale + weight_decay * p; buf = momentum * buf + g'; p -= lr * (nesterov ? g' + momentum *
  // buf : buf). buf is null for plain SGD.
  void (*sgd)(float* p, float* buf, const float* g, uint16_t* p_bf16, int64_t begin, int64_t end,
              const SgdStep& step);
  // m = beta1 m + (1 - beta1) g'; v = beta2 v + (1 - beta2) g'^2; p -= step_size m / (sqrt(v) inv_sqrt_bias2
  // + eps).
  void (*adam)(float* p, float* m, float* v, const float* g, uint16_t* p_bf16, int64_t begin, int64_t end,
               const AdamStep& step);
  void (*adamw)(float* p, float* m, float* v, const float* g, uint16_t* p_bf16, int64_t begin, int64_t end,
                const AdamStep& step);
  // steps[0], ..., steps[k - 1] of AdamW with a gradient of +0 on n elements, equal bit for bit to k calls of
  // adamw: rows of an embedding that no token touched are caught up when they are next needed.
  void (*adamw_replay)(float* p, float* m, float* v, uint16_t* p_bf16, int64_t n, const AdamStep* steps,
                       int64_t k);
  // p = decay p - lr sign(beta1 m + (1 - beta1) g'); m = beta2 m + (1 - beta2) g' (arXiv 2302.06675).
  void (*lion)(float* p, float* m, const float* g, uint16_t* p_bf16, int64_t begin, int64_t end,
               const LionStep& step);
};

namespace avx2 {
extern const OptimizerLoops optimizer_loops;
}
namespace avx512 {
extern const OptimizerLoops optimizer_loops;
}

}  // namespace lockstep::cpu
