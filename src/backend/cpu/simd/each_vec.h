// each_vec: runs a body over the range [begin, end) one Vec at a time. The last, partial Vec goes through the
// same body with a lane count, so body and tail cannot differ in arithmetic.
#pragma once
#include "backend/cpu/simd/convert.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

// v with zeros in the absent lanes.
inline Vec keep(Vec v, AllLanes) { return v; }
inline Vec keep(Vec v, FirstLanes lanes) {
  VecInt lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  return select(lane < broadcast_int(static_cast<int32_t>(lanes.count)), v, zero());
}

// body(int64_t first_element, lanes)
template <class Body>
inline void each_vec(int64_t begin, int64_t end, Body body) {
  int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) body(i, AllLanes{});
  if (i < end) body(i, FirstLanes{end - i});
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
