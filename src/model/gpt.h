// gpt: the GPT-2 shape. Learned positions, pre-norm blocks, one qkv projection, tanh gelu, head tied to the
// embedding.
#pragma once
#include "model/model.h"

namespace lockstep {

struct GptSizes {
  int64_t layers = 12;
  int64_t dim = 768;
  int64_t heads = 12;
  int64_t vocab = 50304;
  int64_t batch = 4;
  int64_t seq = 256;
  double dropout = 0.0;
  bool training = true;  // false: the graph to evaluate with
  // Rows hold several documents: no position attends to another document, and positions are given.
  bool documents = false;
};

// Inputs: tokens i32[B,T], targets i32[B,T] (-100 is not counted); with documents also documents i32[B,T]
// (equal numbers belong together) and positions i32[B,T]; in training with dropout also rng i64[2].
Model build_gpt(const GptSizes& sizes);

}  // namespace lockstep
