// encoder: the BERT shape with a classification head. Post-norm blocks, exact gelu, pooler on the first
// position.
#pragma once
#include "model/model.h"

namespace lockstep {

struct EncoderSizes {
  int64_t layers = 12;
  int64_t dim = 768;
  int64_t heads = 12;
  int64_t hidden = 3072;
  int64_t vocab = 30522;
  int64_t classes = 2;
  int64_t batch = 8;
  int64_t seq = 128;
  double dropout = 0.0;
  bool padded = false;   // takes keys_visible u8[B,T]: 0 where a position is padding
  bool training = true;  // false: the graph to evaluate with
};

// Inputs: tokens i32[B,T], segments i32[B,T], labels i32[B]; in training with dropout also rng
// i64[2].
Model build_encoder(const EncoderSizes& sizes);

}  // namespace lockstep
