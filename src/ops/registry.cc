#include "ops/registry.h"

namespace lockstep {

// clang-format off
#define LOCKSTEP_OPS(X) \
  /* pointwise */ X(add) X(sub) X(mul) X(div) X(neg) X(exp) X(log) X(sqrt) X(rsqrt) X(pow) \
    X(tanh) X(erf) X(sigmoid) X(relu) X(gelu) X(gelu_grad) X(silu) X(silu_grad) \
    X(abs) X(sign) X(minimum) X(maximum) X(clamp) X(where) X(compare) X(logical_not) X(cast) \
  /* shapes */ X(lower_triangle) X(lower_triangle_grad) X(constant) X(iota) X(reshape) X(broadcast) X(transpose) X(slice) X(concat) X(split) X(pad) \
  /* reductions */ X(sum) X(mean) X(max) X(max_grad) X(argmax) \
  /* products */ X(matmul) X(linear) X(matmul_gelu_grad) \
  /* fused */ X(fused) X(fused_sum) \
  /* convolution */ X(conv2d) X(conv2d_grad_input) X(conv2d_grad_filter) \
    X(max_pool2d) X(max_pool2d_grad) X(avg_pool2d) X(avg_pool2d_grad) \
  /* losses */ X(cross_entropy) X(cross_entropy_grad) X(bce_with_logits) X(bce_with_logits_grad) X(mse) X(softmax) X(softmax_grad) X(log_softmax) X(log_softmax_grad) \
  /* norms */ X(layer_norm) X(layer_norm_grad) X(add_layer_norm) X(rms_norm) X(rms_norm_grad) X(add_rms_norm) \
  /* channel norms */ X(batch_norm) X(batch_norm_grad) X(group_norm) X(group_norm_grad) \
  /* attention */ X(attention) X(attention_grad) X(attention_qkv) X(attention_qkv_grad) X(rope) \
  /* tables */ X(embedding) X(embedding_grad) X(gather) X(scatter_add) X(put_rows) X(embedding_bag) X(embedding_bag_grad) \
  /* random */ X(dropout) X(round_stochastic) \
  /* optimizers */ X(global_norm) X(square_sums) X(norm_of_squares) X(sgd) X(adam) X(adamw) X(lion) X(lamb) X(adafactor) X(row_gradient) X(adamw_catch_up) X(adamw_rows) \
  /* markers */ X(checkpoint) \
  /* leaves of a split model */ X(spread) X(leaf_sum) X(cross_entropy_leaves) X(cross_entropy_part) X(cross_entropy_join) \
  /* collectives */ X(all_reduce) X(all_reduce_start) X(all_reduce_done) X(all_gather) X(all_gather_start) X(all_gather_done) \
    X(reduce_scatter) X(reduce_scatter_start) X(reduce_scatter_done) X(all_to_all) X(all_to_all_start) X(all_to_all_done) \
    X(broadcast_from) X(broadcast_from_start) X(broadcast_from_done) X(reduce_to) X(reduce_to_start) X(reduce_to_done) \
    X(send) X(send_start) X(send_done) X(recv) X(recv_start) X(recv_done) \
    X(gather_unit_start) X(gather_unit_done) X(unit_part)
// clang-format on

#define DECLARE(name) OpDef name##_op();
LOCKSTEP_OPS(DECLARE)
#undef DECLARE

const OpSet& all_ops() {
#define MAKE(name) name##_op(),
  static const OpSet ops({LOCKSTEP_OPS(MAKE)});
#undef MAKE
  return ops;
}

}  // namespace lockstep
