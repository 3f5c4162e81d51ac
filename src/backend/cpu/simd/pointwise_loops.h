// PointwiseLoops: scalar functions applied over contiguous tiles, the instruction set of the fused-expression
// interpreter.
//
// A tile is at most a few thousand floats, so that operands and result stay in the first cache. The result
// may be the same memory as any operand. NaN: every function returns NaN for a NaN operand, except
// comparisons (IEEE: only `ne` is true), `logical_not` and `where` (a NaN is not zero), and pow(x, 0) =
// pow(1, y) = 1.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

// Ordered by the number of operands. Predicates give 1 or 0.
enum class Scalar : uint8_t {
  copy,
  neg,
  abs,
  sign,
  square,
  reciprocal,
  sqrt,
  rsqrt,
  exp,
  log,
  tanh,
  erf,
  sigmoid,
  softplus,
  relu,
  gelu_erf,
  gelu_erf_grad,  // the derivative at x, likewise below
  gelu_tanh,
  gelu_tanh_grad,
  silu,
  silu_grad,
  logical_not,
  add,
  sub,
  mul,
  div,
  min,
  max,
  pow,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  where,  // a != 0 ? b : c
  fma,    // a * b + c, rounded once
};
inline constexpr int kScalarCount = static_cast<int>(Scalar::fma) + 1;

constexpr int arity(Scalar f) { return f < Scalar::add ? 1 : f < Scalar::where ? 2 : 3; }

struct PointwiseLoops {
  // out[i] = f(a[i], b[i], c[i]); operands beyond the arity are not read.
  void (*tile[kScalarCount])(float* out, const float* a, const float* b, const float* c, int64_t n);
  // out[i] = f(a[i], b) and f(a, b[i]): null where f is not binary.
  void (*tile_scalar[kScalarCount])(float* out, const float* a, float b, int64_t n);
  void (*scalar_tile[kScalarCount])(float* out, float a, const float* b, int64_t n);
  void (*fill)(float* out, float value, int64_t n);

  // Storage conversions. f32 to bf16 and f16 round to nearest even with one canonical NaN; to i32 they
  // truncate (INT32_MIN where it does not fit); to u8 they truncate and saturate, NaN gives 0; to bool: not
  // equal to zero.
  void (*from_bf16)(float* out, const uint16_t* in, int64_t n);
  void (*from_f16)(float* out, const uint16_t* in, int64_t n);
  void (*from_i32)(float* out, const int32_t* in, int64_t n);
  void (*from_u8)(float* out, const uint8_t* in, int64_t n);
  void (*to_bf16)(uint16_t* out, const float* in, int64_t n);
  void (*to_f16)(uint16_t* out, const float* in, int64_t n);
  void (*to_i32)(int32_t* out, const float* in, int64_t n);
  void (*to_u8)(uint8_t* out, const float* in, int64_t n);
  void (*to_bool)(uint8_t* out, const float* in, int64_t n);
};

namespace avx2 {
extern const PointwiseLoops pointwise_loops;
}
namespace avx512 {
extern const PointwiseLoops pointwise_loops;
}

}  // namespace lockstep::cpu
