// rope: rotary positions over [B, T, H, D].
#pragma once
#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

struct RopeShape {
  int64_t tokens = 0;    // B T
  int64_t sequence = 0;  // T: token i stands at position i % T unless positions are given
  int64_t heads = 0;     // of x
  int64_t turned = 0;    // leading heads that turn; the others are copied
  int64_t width = 0;     // D
  int64_t rotary = 0;    // leading elements of a head that turn
  bool interleaved = false;
  bool inverse = false;
  DType dtype = DType::kF32;
};

// cosine and sine are f32 [positions, rotary / 2], made on the host in double. positions is i32 [tokens] or
// null. y may be x: then only what turns is touched.
void rope(cudaStream_t stream, const RopeShape& shape, const void* x, const int32_t* positions,
          const float* cosine, const float* sine, void* y);

}  // namespace lockstep::cuda
