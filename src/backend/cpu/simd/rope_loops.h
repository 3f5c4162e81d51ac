// Rotary position embedding: rotates pairs of each head's first rotary_dim elements by an angle that grows
// with position.
//
// The tables cos and sin are [positions, rotary_dim/2]. The gradient of a rotation is the rotation by the
// opposite angle (inverse). x is [B,T,H,D] with strides, and so is y, which may be x itself; elements from
// rotary_dim on are copied. rotate works on tokens [first_token, last_token) out of B*T, and each token is
// independent of the others.
#pragma once
#include <cstdint>

#include "backend/cpu/simd/head_strides.h"

namespace lockstep::cpu {

struct RopeRotation {
  int64_t batch;
  int64_t tokens;
  int64_t heads;
  int64_t head_dim;
  int64_t rotary_dim;  // even, at most head_dim
  // Which elements form a pair: 2i and 2i+1 when interleaved, i and i + rotary_dim/2 otherwise.
  bool interleaved = false;
  bool inverse = false;
  // [B,T], rows of the tables; null means that token t of every sequence stands at position t.
  const int32_t* positions = nullptr;
  const float* cos;
  const float* sin;
  const float* x;
  float* y;
  HeadStrides x_strides, y_strides;
};

struct RopeLoops {
  void (*rotate)(const RopeRotation& args, int64_t first_token, int64_t last_token);
  // Rows [first_position, last_position) of cos and sin, for `pairs` = rotary_dim/2 angular frequencies
  // (radians per position). The arithmetic is our own: no bit depends on the C library.
  void (*fill_tables)(const float* frequencies, int64_t pairs, int64_t first_position, int64_t last_position,
                      float* cos, float* sin);
};

namespace avx2 {
extern const RopeLoops rope_loops;
}
namespace avx512 {
extern const RopeLoops rope_loops;
}

}  // namespace lockstep::cpu
