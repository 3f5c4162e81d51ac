// HeadStrides: where element [batch, row, head, 0] of a tensor of heads lies, counted in floats.
//
// The head dimension itself is always contiguous. A packed qkv buffer [B,T,3,H,D] is read without a copy: its
// q, k and v share the strides {3*H*D, D, T*3*H*D} and differ only in their first element.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

struct HeadStrides {
  int64_t row;
  int64_t head;
  int64_t batch;
};

}  // namespace lockstep::cpu
