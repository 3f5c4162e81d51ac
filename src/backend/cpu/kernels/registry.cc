// The one list of CPU kernels. Adding one: write kernels/<op>.cc with a function that returns its KernelDef,
// and name it here. Several kernels may serve one op; the first in this list that does not refuse is taken.
#include "backend/cpu/kernel_def.h"

namespace lockstep::cpu {

// clang-format off
#define LOCKSTEP_KERNELS(X) \
  /* products */ X(matvec) X(matmul_f32) X(matmul_bf16) X(matmul_bf16_via_f32) \
  /* shapes */ X(lower_triangle) X(lower_triangle_grad) X(constant) X(iota) X(broadcast) X(transpose) X(slice) X(split) X(concat) X(pad) \
  /* pointwise and fused */ X(pointwise) X(pointwise_exact) X(fused) X(fused_sum) \
  /* reductions */ X(sum) X(mean) X(max) X(max_grad) X(argmax) \
  /* convolution */ X(conv2d_direct) X(conv2d) X(conv2d_unfold) X(conv2d_bf16_via_f32) \
    X(conv2d_grad_input_direct) X(conv2d_grad_input) X(conv2d_grad_input_unfold) X(conv2d_grad_input_bf16_via_f32) \
    X(conv2d_grad_filter_direct) X(conv2d_grad_filter) X(conv2d_grad_filter_unfold) X(conv2d_grad_filter_bf16_via_f32) \
    X(max_pool2d) X(max_pool2d_bf16_via_f32) X(max_pool2d_grad) X(max_pool2d_grad_bf16_via_f32) \
    X(avg_pool2d) X(avg_pool2d_bf16_via_f32) X(avg_pool2d_grad) X(avg_pool2d_grad_bf16_via_f32) \
  /* losses */ X(cross_entropy) X(cross_entropy_part) X(cross_entropy_grad) X(bce_with_logits) X(bce_with_logits_grad) X(mse) X(softmax) X(softmax_grad) X(log_softmax) X(log_softmax_grad) \
  /* norms */ X(layer_norm) X(layer_norm_grad) X(add_layer_norm) X(rms_norm) X(rms_norm_grad) X(add_rms_norm) \
  /* channel norms */ X(batch_norm) X(batch_norm_grad) X(group_norm) X(group_norm_grad) \
    X(batch_norm_bf16_via_f32) X(batch_norm_grad_bf16_via_f32) X(group_norm_bf16_via_f32) X(group_norm_grad_bf16_via_f32) \
  /* attention */ X(cached_attention) X(attention) X(attention_grad) X(attention_qkv) X(attention_qkv_grad) X(rope) \
  /* tables */ X(embedding) X(embedding_grad) X(gather) X(scatter_add) X(put_rows) X(embedding_bag) X(embedding_bag_grad) \
  /* random */ X(dropout) X(round_stochastic) \
  /* optimizers */ X(global_norm) X(square_sums) X(norm_of_squares) X(sgd) X(adam) X(adamw) X(lion) X(sgd_rounded) X(adam_rounded) X(adamw_rounded) X(lion_rounded) X(lamb) X(adafactor) X(row_gradient) X(adamw_catch_up) X(adamw_rows)
// clang-format on

#define DECLARE(name) KernelDef name##_kernel();
LOCKSTEP_KERNELS(DECLARE)
#undef DECLARE

const std::vector<KernelDef>& all_kernels() {
#define MAKE(name) name##_kernel(),
  static const std::vector<KernelDef> kernels{LOCKSTEP_KERNELS(MAKE)};
#undef MAKE
  return kernels;
}

}  // namespace lockstep::cpu
