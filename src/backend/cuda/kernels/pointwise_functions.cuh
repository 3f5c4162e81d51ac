// Scalar functions of floats, one per pointwise op: the one place where their arithmetic is written. Kernels
// of this folder include it, and its text goes in front of every kernel that is generated at run time, so
// that a fused region has the bits of its ops run one by one. Nothing is included here for that reason.
//
// Sweeps over activations are to be limited by memory, which allows some twenty instructions per element:
// sigmoids, of which gelu and silu are made, take the processor's approximate exponential and reciprocal,
// with relative errors of a few 1e-6 at most. Below 1e-38 they give 0.
//
// At -infinity gelu and silu give their limit 0, not the NaN of a literal -inf * 0.

namespace lockstep_pointwise {

// 2^x, infinite from 128 on.
__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// exp(-x).
__device__ __forceinline__ float fading(float x) { return power_of_two(x * -1.44269504f); }

__device__ __forceinline__ float f_copy(float x) { return x; }
__device__ __forceinline__ float f_neg(float x) { return -x; }
__device__ __forceinline__ float f_abs(float x) { return fabsf(x); }
__device__ __forceinline__ float f_sign(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }
__device__ __forceinline__ float f_sqrt(float x) { return sqrtf(x); }
__device__ __forceinline__ float f_rsqrt(float x) { return 1.0f / sqrtf(x); }
__device__ __forceinline__ float f_exp(float x) { return expf(x); }
__device__ __forceinline__ float f_log(float x) { return logf(x); }
__device__ __forceinline__ float f_tanh(float x) { return tanhf(x); }
__device__ __forceinline__ float f_erf(float x) { return erff(x); }
__device__ __forceinline__ float f_sigmoid(float x) { return reciprocal(1.0f + fading(x)); }
__device__ __forceinline__ float f_relu(float x) { return x < 0.0f ? 0.0f : x; }
__device__ __forceinline__ float f_logical_not(float x) { return x == 0.0f ? 1.0f : 0.0f; }

__device__ __forceinline__ float f_silu(float x) {
  x = x < -104.0f ? -104.0f : x;
  return x * reciprocal(1.0f + fading(x));
}
__device__ __forceinline__ float f_silu_slope(float x) {
  x = x < -88.0f ? -88.0f : x > 88.0f ? 88.0f : x;
  const float e = fading(x);
  const float s = reciprocal(1.0f + e);
  return s * fmaf(x, e * s, 1.0f);  // e * s is 1 - s without its cancellation
}

__device__ __forceinline__ float normal_cdf(float x) { return 0.5f * erfcf(x * -0.707106781f); }
__device__ __forceinline__ float f_gelu_erf(float x) {
  x = x < -20.0f ? -20.0f : x;
  return x * normal_cdf(x);
}
__device__ __forceinline__ float f_gelu_erf_slope(float x) {
  x = x < -20.0f ? -20.0f : x > 20.0f ? 20.0f : x;
  return fmaf(x, expf(x * x * -0.5f) * 0.398942280f, normal_cdf(x));
}

// The tanh form is x * sigmoid(u) with u = 2 sqrt(2/pi) (x + 0.044715 x^3): one exponential and one
// reciprocal, and no cancellation for negative x. The powers of two below have u / log(2).
__device__ __forceinline__ float f_gelu_tanh(float x) {
  x = x < -20.0f ? -20.0f : x;
  return x * reciprocal(1.0f + power_of_two(x * fmaf(x * x, -0.102943240f, -2.302208198f)));
}
__device__ __forceinline__ float f_gelu_tanh_slope(float x) {
  x = x < -10.0f ? -10.0f : x > 10.0f ? 10.0f : x;
  const float square = x * x;
  const float e = power_of_two(x * fmaf(square, -0.102943240f, -2.302208198f));
  const float s = reciprocal(1.0f + e);
  return s * fmaf(x * fmaf(square, 0.2140644489f, 1.595769122f), e * s, 1.0f);
}

__device__ __forceinline__ float f_add(float a, float b) { return a + b; }
__device__ __forceinline__ float f_sub(float a, float b) { return a - b; }
__device__ __forceinline__ float f_mul(float a, float b) { return a * b; }
__device__ __forceinline__ float f_div(float a, float b) { return a / b; }
__device__ __forceinline__ float f_minimum(float a, float b) { return a != a || a < b ? a : b; }
__device__ __forceinline__ float f_maximum(float a, float b) { return a != a || a > b ? a : b; }
__device__ __forceinline__ float f_pow(float a, float b) { return powf(a, b); }
__device__ __forceinline__ float f_eq(float a, float b) { return a == b ? 1.0f : 0.0f; }
__device__ __forceinline__ float f_ne(float a, float b) { return a != b ? 1.0f : 0.0f; }
__device__ __forceinline__ float f_lt(float a, float b) { return a < b ? 1.0f : 0.0f; }
__device__ __forceinline__ float f_le(float a, float b) { return a <= b ? 1.0f : 0.0f; }
__device__ __forceinline__ float f_gt(float a, float b) { return a > b ? 1.0f : 0.0f; }
__device__ __forceinline__ float f_ge(float a, float b) { return a >= b ? 1.0f : 0.0f; }
__device__ __forceinline__ float f_silu_grad(float x, float dy) { return f_silu_slope(x) * dy; }
__device__ __forceinline__ float f_gelu_erf_grad(float x, float dy) { return f_gelu_erf_slope(x) * dy; }
__device__ __forceinline__ float f_gelu_tanh_grad(float x, float dy) { return f_gelu_tanh_slope(x) * dy; }
__device__ __forceinline__ float f_where(float c, float a, float b) { return c != 0.0f ? a : b; }

}  // namespace lockstep_pointwise
