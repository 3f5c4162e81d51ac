// Combining rows of channels for pools. See pool_loops.h.
#include "backend/cpu/simd/pool_loops.h"

#include "backend/cpu/simd/lanes.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// Places travel as the bits of a Vec.
inline Vec place_bits(int32_t place) { return (Vec)broadcast_int(place); }
inline const float* bits_at(const int32_t* p) { return reinterpret_cast<const float*>(p); }

void largest(float* y, int32_t* index, const float* const* rows, const int32_t* places, int64_t count,
             int64_t channels) {
  for_lanes(channels, [=](int64_t i, auto lanes) {
    Vec best = load(rows[0] + i, lanes);
    Vec place = place_bits(places[0]);
    for (int64_t r = 1; r < count; ++r) {
      const Vec v = load(rows[r] + i, lanes);
      const VecInt better = (v > best) | (v != v);
      best = select(better, v, best);
      place = select(better, place_bits(places[r]), place);
    }
    store(y + i, best, lanes);
    store(reinterpret_cast<float*>(index + i), place, lanes);
  });
}

void sum_where(float* dx, const float* const* rows, const int32_t* const* indices, int32_t place,
               int64_t count, int64_t channels) {
  for_lanes(channels, [=](int64_t i, auto lanes) {
    Vec sum = zero();
    for (int64_t r = 0; r < count; ++r) {
      const VecInt here = (VecInt)load(bits_at(indices[r] + i), lanes) == broadcast_int(place);
      sum += select(here, load(rows[r] + i, lanes), zero());
    }
    store(dx + i, sum, lanes);
  });
}

void weighted_sum(float* y, const float* const* rows, const float* weights, int64_t count, int64_t channels) {
  for_lanes(channels, [=](int64_t i, auto lanes) {
    Vec sum = zero();
    for (int64_t r = 0; r < count; ++r) sum = fma(load(rows[r] + i, lanes), broadcast(weights[r]), sum);
    store(y + i, sum, lanes);
  });
}

}  // namespace

extern const PoolLoops pool_loops = {largest, sum_where, weighted_sum};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
