// PoolLoops: combines a few rows of channels, as pools over channels-last images do.
//
// `rows` are the pixels of one window, or the windows over one pixel; they are taken in order.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

struct PoolLoops {
  // y[c] = the largest rows[r][c], index[c] = places[r] of the first that is largest, or of the last NaN.
  // count >= 1.
  void (*largest)(float* y, int32_t* index, const float* const* rows, const int32_t* places, int64_t count,
                  int64_t channels);
  // dx[c] = sum of rows[r][c] over those r where indices[r][c] == place.
  void (*sum_where)(float* dx, const float* const* rows, const int32_t* const* indices, int32_t place,
                    int64_t count, int64_t channels);
  // y[c] = sum of rows[r][c] * weights[r], each step rounded once.
  void (*weighted_sum)(float* y, const float* const* rows, const float* weights, int64_t count,
                       int64_t channels);
};

namespace avx2 {
extern const PoolLoops pool_loops;
}
namespace avx512 {
extern const PoolLoops pool_loops;
}

}  // namespace lockstep::cpu
