// llama: the LLaMA shape. Pre-norm blocks with rms norms, rotary positions, query heads that share key heads
// in groups, a gated silu MLP, no biases; the head has a table of its own or the embedding's.
#pragma once
#include "model/model.h"

namespace lockstep {

struct LlamaSizes {
  int64_t layers = 22;
  int64_t dim = 2048;
  int64_t heads = 32;
  int64_t kv_heads = 4;
  int64_t hidden = 5632;
  int64_t vocab = 32000;
  int64_t batch = 4;
  int64_t seq = 2048;
  double rope_theta = 10000;
  double norm_epsilon = 1e-5;
  bool tied = false;     // the head reads the embedding's table
  bool training = true;  // false: the graph to evaluate with
  // Rows hold several documents: no position attends to another document, and positions are given.
  bool documents = false;
};

// Inputs: tokens i32[B,T], targets i32[B,T] (-100 is not counted); with documents also documents i32[B,T]
// (equal numbers belong together) and positions i32[B,T].
Model build_llama(const LlamaSizes& sizes);

// The width of the MLP that the published models take for a width: 8/3 of it, up to a multiple of 256.
int64_t llama_hidden(int64_t dim);

}  // namespace lockstep
