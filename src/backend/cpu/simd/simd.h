// The loops of one instruction set, gathered: what kernels call through.
#pragma once
#include "backend/cpu/isa.h"
#include "backend/cpu/simd/adafactor_loops.h"
#include "backend/cpu/simd/attention_loops.h"
#include "backend/cpu/simd/cached_attention_loops.h"
#include "backend/cpu/simd/channel_loops.h"
#include "backend/cpu/simd/direct_conv_loops.h"
#include "backend/cpu/simd/dropout_loops.h"
#include "backend/cpu/simd/embedding_loops.h"
#include "backend/cpu/simd/lamb_loops.h"
#include "backend/cpu/simd/matvec_loops.h"
#include "backend/cpu/simd/norm2_loops.h"
#include "backend/cpu/simd/norm_loops.h"
#include "backend/cpu/simd/optimizer_loops.h"
#include "backend/cpu/simd/pointwise_loops.h"
#include "backend/cpu/simd/pool_loops.h"
#include "backend/cpu/simd/reduce_loops.h"
#include "backend/cpu/simd/rope_loops.h"
#include "backend/cpu/simd/rounding_loops.h"
#include "backend/cpu/simd/softmax_loops.h"

namespace lockstep::cpu {

struct Simd {
  Isa isa;
  const PointwiseLoops& pointwise;
  const ReduceLoops& reduce;
  const SoftmaxLoops& softmax;
  const NormLoops& norm;
  const ChannelLoops& channel;
  const AttentionLoops& attention;
  const RopeLoops& rope;
  const DropoutLoops& dropout;
  const OptimizerLoops& optimizer;
  const LambLoops& lamb;
  const AdafactorLoops& adafactor;
  const Norm2Loops& norm2;
  const EmbeddingLoops& embedding;
  const PoolLoops& pool;
  const DirectConvLoops& direct_conv;
  const RoundingLoops& rounding;
  const MatvecLoops& matvec;
  const CachedAttentionLoops& cached_attention;
};

const Simd& simd_for(Isa isa);

}  // namespace lockstep::cpu
