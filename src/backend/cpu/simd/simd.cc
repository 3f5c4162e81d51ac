#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {

const Simd& simd_for(Isa isa) {
  static const Simd avx2_loops = {Isa::kAvx2,
                                  avx2::pointwise_loops,
                                  avx2::reduce_loops,
                                  avx2::softmax_loops,
                                  avx2::norm_loops,
                                  avx2::channel_loops,
                                  avx2::attention_loops,
                                  avx2::rope_loops,
                                  avx2::dropout_loops,
                                  avx2::optimizer_loops,
                                  avx2::lamb_loops,
                                  avx2::adafactor_loops,
                                  avx2::norm2_loops,
                                  avx2::embedding_loops,
                                  avx2::pool_loops,
                                  avx2::direct_conv_loops,
                                  avx2::rounding_loops,
                                  avx2::matvec_loops,
                                  avx2::cached_attention_loops};
  static const Simd avx512_loops = {Isa::kAvx512,
                                    avx512::pointwise_loops,
                                    avx512::reduce_loops,
                                    avx512::softmax_loops,
                                    avx512::norm_loops,
                                    avx512::channel_loops,
                                    avx512::attention_loops,
                                    avx512::rope_loops,
                                    avx512::dropout_loops,
                                    avx512::optimizer_loops,
                                    avx512::lamb_loops,
                                    avx512::adafactor_loops,
                                    avx512::norm2_loops,
                                    avx512::embedding_loops,
                                    avx512::pool_loops,
                                    avx512::direct_conv_loops,
                                    avx512::rounding_loops,
                                    avx512::matvec_loops,
                                    avx512::cached_attention_loops};
  return isa == Isa::kAvx512 ? avx512_loops : avx2_loops;
}

}  // namespace lockstep::cpu
