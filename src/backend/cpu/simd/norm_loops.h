// NormLoops: layer norm and RMS norm over a range of rows of [rows, cols] tensors, forward and backward.
//
// Pointers are those of the whole tensors; a call handles rows [begin, end). Each row's statistics depend on
// that row alone. Parameter gradients are added to the caller's partial buffers row after row in index order.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

struct NormForward {
  const float* x;
  const float* residual;  // added to x before normalising; may be null
  const float* gamma;
  const float* beta;  // may be null; not used by RMS norm
  float* sum;         // receives x + residual when there is a residual; may be x or residual itself
  float* y;           // may be x when there is no residual
  float* mean;        // [rows]; not used by RMS norm
  float* rstd;        // [rows]: 1/sqrt(variance + eps), or 1/sqrt(mean square + eps)
  float eps;
  int64_t cols;
};

struct NormBackward {
  const float* dy;
  const float* x;  // what was normalised: the forward's sum when there was a residual
  const float* gamma;
  const float* mean;  // not used by RMS norm
  const float* rstd;
  const float* dsum;  // gradient that reaches x by the residual path, added to dx; may be null
  float* dx;          // may be dy or dsum
  float* dgamma;      // [cols] partial sums, added to
  float* dbeta;       // [cols] partial sums, added to; may be null; not used by RMS norm
  int64_t cols;
};

struct NormLoops {
  void (*layer_norm)(const NormForward& args, int64_t begin, int64_t end);
  void (*layer_norm_backward)(const NormBackward& args, int64_t begin, int64_t end);
  void (*rms_norm)(const NormForward& args, int64_t begin, int64_t end);
  void (*rms_norm_backward)(const NormBackward& args, int64_t begin, int64_t end);
};

namespace avx2 {
extern const NormLoops norm_loops;
}
namespace avx512 {
extern const NormLoops norm_loops;
}

}  // namespace lockstep::cpu
