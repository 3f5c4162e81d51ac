// Updates of parameters that are stored in bf16 (ops/rounded_update.h): sgd, adam, adamw and lion over flat
// buffers, in one launch that reads and writes every byte once.
//
// Arithmetic is that of the f32 updates; what is stored in bf16 is rounded with draws that are counted by
// (seed, position, tensor, element), so that results depend on neither the launch nor the part of a buffer
// that is updated.
#pragma once
#include "backend/cuda/kernels/optimizer.h"

namespace lockstep::cuda {

// Elements from `begin` on, up to the next range, are elements first, first + 1, ... of a tensor. Its key
// differs between the results (result_key): parameters, first and second buffer.
struct DrawRange {
  int64_t begin, first;  // multiples of 4
  int64_t keys[3];
};

struct Draws {
  const DrawRange* ranges;  // on the device, rising from 0; one at least
  int count;
  const int64_t* rounding;  // on the device: seed and position
};

// A buffer of the optimizer: read and written, at one address where it is updated in place.
struct Updated {
  const void* old_values;
  void* new_values;
};

struct RoundedState {
  Updated p;      // bf16
  const void* g;  // bf16
  Updated m;      // momentum of sgd and lion; null for sgd without
  Updated v;      // null where there is none
  DType moments;  // of m and v: f32 or bf16
  int64_t count;
};

void rounded_sgd(cudaStream_t stream, const RoundedState& state, const StepScalars& scalars, NoDecay no_decay,
                 const Draws& draws, float momentum, bool nesterov, float weight_decay);
// decoupled: adamw, else adam with the decay in the gradient.
void rounded_adam(cudaStream_t stream, const RoundedState& state, const StepScalars& scalars,
                  NoDecay no_decay, const Draws& draws, const AdamAttributes& attributes, bool decoupled);
void rounded_lion(cudaStream_t stream, const RoundedState& state, const StepScalars& scalars,
                  NoDecay no_decay, const Draws& draws, const AdamAttributes& attributes);

}  // namespace lockstep::cuda
