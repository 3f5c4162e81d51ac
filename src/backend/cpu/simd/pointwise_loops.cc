// The tile primitives: one instantiation per Scalar of one loop. See pointwise_loops.h.
#include "backend/cpu/simd/pointwise_loops.h"

#include "backend/cpu/simd/activation.h"
#include "backend/cpu/simd/convert.h"
#include "backend/cpu/simd/pow.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

inline Vec one_where(VecInt condition) { return condition ? broadcast(1.0f) : zero(); }

// The hardware's min and max return b when either is NaN: only a NaN in a needs care.
inline Vec nan_from(Vec a, Vec result) { return a == a ? result : a; }

inline Vec sign(Vec x) {
  const Vec unit = copy_sign(broadcast(1.0f), x);
  return (x < 0.0f) | (x > 0.0f) ? unit : x;
}

template <Scalar f>
inline Vec apply(Vec a, [[maybe_unused]] Vec b, [[maybe_unused]] Vec c) {
  switch (f) {
    case Scalar::copy: return a;
    case Scalar::neg: return -a;
    case Scalar::abs: return abs(a);
    case Scalar::sign: return sign(a);
    case Scalar::square: return a * a;
    case Scalar::reciprocal: return 1.0f / a;
    case Scalar::sqrt: return sqrt(a);
    case Scalar::rsqrt: return rsqrt(a);
    case Scalar::exp: return exp(a);
    case Scalar::log: return log(a);
    case Scalar::tanh: return tanh(a);
    case Scalar::erf: return erf(a);
    case Scalar::sigmoid: return sigmoid(a);
    case Scalar::softplus: return softplus(a);
    case Scalar::relu: return relu(a);
    case Scalar::gelu_erf: return gelu_erf(a);
    case Scalar::gelu_erf_grad: return gelu_erf_grad(a);
    case Scalar::gelu_tanh: return gelu_tanh(a);
    case Scalar::gelu_tanh_grad: return gelu_tanh_grad(a);
    case Scalar::silu: return silu(a);
    case Scalar::silu_grad: return silu_grad(a);
    case Scalar::logical_not: return one_where(a == 0.0f);
    case Scalar::add: return a + b;
    case Scalar::sub: return a - b;
    case Scalar::mul: return a * b;
    case Scalar::div: return a / b;
    case Scalar::min: return nan_from(a, min(a, b));
    case Scalar::max: return nan_from(a, max(a, b));
    case Scalar::pow: return pow(a, b);
    case Scalar::eq: return one_where(a == b);
    case Scalar::ne: return one_where(a != b);
    case Scalar::lt: return one_where(a < b);
    case Scalar::le: return one_where(a <= b);
    case Scalar::gt: return one_where(a > b);
    case Scalar::ge: return one_where(a >= b);
    case Scalar::logical_and: return one_where((a != 0.0f) & (b != 0.0f));
    case Scalar::logical_or: return one_where((a != 0.0f) | (b != 0.0f));
    case Scalar::where: return a != 0.0f ? b : c;
    case Scalar::fma: return fma(a, b, c);
  }
  __builtin_unreachable();
}

template <Scalar f>
void tile(float* out, const float* a, const float* b, const float* c, int64_t n) {
  for_lanes(n, [=](int64_t i, auto lanes) {
    Vec vb{}, vc{};
    if constexpr (arity(f) >= 2) vb = load(b + i, lanes);
    if constexpr (arity(f) >= 3) vc = load(c + i, lanes);
    store(out + i, apply<f>(load(a + i, lanes), vb, vc), lanes);
  });
}

template <Scalar f>
void tile_scalar(float* out, const float* a, float b, int64_t n) {
  const Vec vb = broadcast(b);
  for_lanes(n,
            [=](int64_t i, auto lanes) { store(out + i, apply<f>(load(a + i, lanes), vb, Vec{}), lanes); });
}

template <Scalar f>
void scalar_tile(float* out, float a, const float* b, int64_t n) {
  const Vec va = broadcast(a);
  for_lanes(n,
            [=](int64_t i, auto lanes) { store(out + i, apply<f>(va, load(b + i, lanes), Vec{}), lanes); });
}

void fill(float* out, float value, int64_t n) {
  const Vec v = broadcast(value);
  for_lanes(n, [=](int64_t i, auto lanes) { store(out + i, v, lanes); });
}

void from_bf16(float* out, const uint16_t* in, int64_t n) {
  for_lanes(n, [=](int64_t i, auto lanes) { store(out + i, load_bf16(in + i, lanes), lanes); });
}
void from_f16(float* out, const uint16_t* in, int64_t n) {
  for_lanes(n, [=](int64_t i, auto lanes) { store(out + i, load_f16(in + i, lanes), lanes); });
}
void from_i32(float* out, const int32_t* in, int64_t n) {
  for_lanes(n, [=](int64_t i, auto lanes) { store(out + i, load_i32(in + i, lanes), lanes); });
}
void from_u8(float* out, const uint8_t* in, int64_t n) {
  for_lanes(n, [=](int64_t i, auto lanes) { store(out + i, load_u8(in + i, lanes), lanes); });
}
void to_bf16(uint16_t* out, const float* in, int64_t n) {
  for_lanes(n, [=](int64_t i, auto lanes) { store_bf16(out + i, load(in + i, lanes), lanes); });
}
void to_f16(uint16_t* out, const float* in, int64_t n) {
  for_lanes(n, [=](int64_t i, auto lanes) { store_f16(out + i, load(in + i, lanes), lanes); });
}
void to_i32(int32_t* out, const float* in, int64_t n) {
  for_lanes(n, [=](int64_t i, auto lanes) { store_i32(out + i, truncate(load(in + i, lanes)), lanes); });
}
void to_u8(uint8_t* out, const float* in, int64_t n) {
  for_lanes(n, [=](int64_t i, auto lanes) {
    // min and max with x first replace a NaN by the bound: here by 0.
    const Vec bounded = min(max(load(in + i, lanes), zero()), broadcast(255.0f));
    store_u8(out + i, truncate(bounded), lanes);
  });
}
void to_bool(uint8_t* out, const float* in, int64_t n) {
  for_lanes(n, [=](int64_t i, auto lanes) { store_u8(out + i, (load(in + i, lanes) != 0.0f) & 1, lanes); });
}

template <int i = 0>
constexpr void fill_tables(PointwiseLoops& loops) {
  constexpr Scalar f = static_cast<Scalar>(i);
  loops.tile[i] = tile<f>;
  if constexpr (arity(f) == 2) {
    loops.tile_scalar[i] = tile_scalar<f>;
    loops.scalar_tile[i] = scalar_tile<f>;
  }
  if constexpr (i + 1 < kScalarCount) fill_tables<i + 1>(loops);
}

constexpr PointwiseLoops make_loops() {
  PointwiseLoops loops{};
  fill_tables(loops);
  loops.fill = fill;
  loops.from_bf16 = from_bf16;
  loops.from_f16 = from_f16;
  loops.from_i32 = from_i32;
  loops.from_u8 = from_u8;
  loops.to_bf16 = to_bf16;
  loops.to_f16 = to_f16;
  loops.to_i32 = to_i32;
  loops.to_u8 = to_u8;
  loops.to_bool = to_bool;
  return loops;
}

}  // namespace

extern constexpr PointwiseLoops pointwise_loops = make_loops();

}  // namespace lockstep::cpu::LOCKSTEP_ISA
