#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/pointwise.h"
#include "backend/cuda/kernels/pointwise_functions.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPacksPerThread = 2;  // loads in flight before the first use

// Calls body(first element, elements) for this thread's packs; the last one may be short. Tails are single
// elements and go through the same arithmetic.
template <typename T, typename Packs, typename One>
__device__ __forceinline__ void for_packs(int64_t count, bool packed, const Packs& packs, const One& one) {
  if (!packed) {
    for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
         i += int64_t{gridDim.x} * kThreads)
      one(i);
    return;
  }
  const int64_t whole = count / kPack<T>;
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t p = int64_t{blockIdx.x} * kThreads + threadIdx.x; p < whole; p += step) packs(p * kPack<T>);
  const int64_t tail = whole * kPack<T> + threadIdx.x;
  if (blockIdx.x == 0 && tail < count) one(tail);
}

struct UnaryArgs {
  const void* a;
  void* out;
  int64_t count;
  bool packed;
};

template <typename F, typename T>
__global__ void __launch_bounds__(kThreads) unary_kernel(UnaryArgs args) {
  const auto* a = static_cast<const T*>(args.a);
  auto* out = static_cast<T*>(args.out);
  for_packs<T>(
      args.count, args.packed,
      [&](int64_t i) {
        Pack<T> pack = load_pack(a + i);
#pragma unroll
        for (int k = 0; k < kPack<T>; ++k) pack.v[k] = from_float<T>(F::apply(to_float(pack.v[k])));
        store_pack(out + i, pack);
      },
      [&](int64_t i) { out[i] = from_float<T>(F::apply(to_float(a[i]))); });
}

struct BinaryArgs {
  const void* a;
  const void* b;
  void* out;
  int64_t count;
  int64_t row;
  Operand b_is;
  bool packed;
};

template <typename F, typename T>
__global__ void __launch_bounds__(kThreads) binary_kernel(BinaryArgs args) {
  const auto* a = static_cast<const T*>(args.a);
  const auto* b = static_cast<const T*>(args.b);
  auto* out = static_cast<T*>(args.out);
  const float scalar = args.b_is == Operand::kScalar ? to_float(b[0]) : 0.0f;
  for_packs<T>(
      args.count, args.packed,
      [&](int64_t i) {
        Pack<T> x = load_pack(a + i);
        Pack<T> y{};
        if (args.b_is != Operand::kScalar) y = load_pack(b + (args.b_is == Operand::kRow ? i % args.row : i));
#pragma unroll
        for (int k = 0; k < kPack<T>; ++k)
          x.v[k] = from_float<T>(
              F::apply(to_float(x.v[k]), args.b_is == Operand::kScalar ? scalar : to_float(y.v[k])));
        store_pack(out + i, x);
      },
      [&](int64_t i) {
        const float y = args.b_is == Operand::kScalar
                            ? scalar
                            : to_float(b[args.b_is == Operand::kRow ? i % args.row : i]);
        out[i] = from_float<T>(F::apply(to_float(a[i]), y));
      });
}

#define FUNCTION(name)                                         \
  struct Function_##name {                                     \
    template <typename... Args>                                \
    static __device__ __forceinline__ float apply(Args... x) { \
      return ::lockstep_pointwise::f_##name(x...);             \
    }                                                          \
  };
LOCKSTEP_CUDA_UNARY(FUNCTION)
LOCKSTEP_CUDA_BINARY(FUNCTION)
#undef FUNCTION

template <typename T>
unsigned grid_for(int64_t count) {
  return blocks_for(ceil_div(count, kPack<T>), kThreads);
}

template <typename From, typename To>
__global__ void __launch_bounds__(kThreads)
    cast_kernel(const From* from, To* to, int64_t count, bool packed) {
  constexpr int kWidth = 4 * kPacksPerThread;
  if (packed) {
    const int64_t whole = count / kWidth;
    for (int64_t p = int64_t{blockIdx.x} * kThreads + threadIdx.x; p < whole;
         p += int64_t{gridDim.x} * kThreads) {
      const auto in = *reinterpret_cast<const Pack<From, kWidth>*>(from + p * kWidth);
      Pack<To, kWidth> out;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) out.v[k] = from_float<To>(to_float(in.v[k]));
      *reinterpret_cast<Pack<To, kWidth>*>(to + p * kWidth) = out;
    }
    const int64_t tail = whole * kWidth + threadIdx.x;
    if (blockIdx.x == 0 && tail < count) to[tail] = from_float<To>(to_float(from[tail]));
    return;
  }
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * kThreads)
    to[i] = from_float<To>(to_float(from[i]));
}

template <Gate kGate>
__device__ __forceinline__ float gate_value(float x) {
  using namespace ::lockstep_pointwise;
  return kGate == Gate::kSilu ? f_silu(x) : kGate == Gate::kGeluTanh ? f_gelu_tanh(x) : f_gelu_erf(x);
}
template <Gate kGate>
__device__ __forceinline__ float gate_slope(float x) {
  using namespace ::lockstep_pointwise;
  return kGate == Gate::kSilu       ? f_silu_slope(x)
         : kGate == Gate::kGeluTanh ? f_gelu_tanh_slope(x)
                                    : f_gelu_erf_slope(x);
}

// blockIdx.y walks the rows; N elements per thread.
template <typename T, Gate kGate, int N>
__global__ void __launch_bounds__(kThreads)
    gated_kernel(const T* gate_up, T* out, int64_t rows, int64_t width) {
  const int64_t column = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * N;
  if (column >= width) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const T* at = gate_up + row * 2 * width + column;
    const auto gate = *reinterpret_cast<const Pack<T, N>*>(at);
    const auto up = *reinterpret_cast<const Pack<T, N>*>(at + width);
    Pack<T, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float g = to_float(from_float<T>(gate_value<kGate>(to_float(gate.v[k]))));
      result.v[k] = from_float<T>(g * to_float(up.v[k]));
    }
    *reinterpret_cast<Pack<T, N>*>(out + row * width + column) = result;
  }
}

template <typename T, Gate kGate, int N>
__global__ void __launch_bounds__(kThreads)
    gated_grad_kernel(const T* gate_up, const T* dout, T* dgate_up, int64_t rows, int64_t width) {
  const int64_t column = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * N;
  if (column >= width) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const int64_t first = row * 2 * width + column;
    const auto gate = *reinterpret_cast<const Pack<T, N>*>(gate_up + first);
    const auto up = *reinterpret_cast<const Pack<T, N>*>(gate_up + first + width);
    const auto dy = *reinterpret_cast<const Pack<T, N>*>(dout + row * width + column);
    Pack<T, N> dgate, dup;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float x = to_float(gate.v[k]), d = to_float(dy.v[k]);
      const float g = to_float(from_float<T>(gate_value<kGate>(x)));
      const float dg = to_float(from_float<T>(d * to_float(up.v[k])));
      dup.v[k] = from_float<T>(d * g);
      dgate.v[k] = from_float<T>(gate_slope<kGate>(x) * dg);
    }
    *reinterpret_cast<Pack<T, N>*>(dgate_up + first) = dgate;
    *reinterpret_cast<Pack<T, N>*>(dgate_up + first + width) = dup;
  }
}

template <typename Body>
void with_gate(Gate gate, const Body& body) {
  if (gate == Gate::kSilu) return body.template operator()<Gate::kSilu>();
  if (gate == Gate::kGeluTanh) return body.template operator()<Gate::kGeluTanh>();
  body.template operator()<Gate::kGeluErf>();
}

dim3 gated_grid(int64_t rows, int64_t width, int elements) {
  return dim3(blocks_for(width, int64_t{kThreads} * elements),
              static_cast<unsigned>(rows < 65535 ? rows : 65535));
}

}  // namespace

void unary(cudaStream_t stream, PointwiseFunction function, DType dtype, const void* a, void* out,
           int64_t count) {
  if (count == 0) return;
  const UnaryArgs args{a, out, count, aligned16(a) && aligned16(out)};
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    switch (function) {
#define CASE(name)              \
  case PointwiseFunction::name: \
    return unary_kernel<Function_##name, T><<<grid_for<T>(count), kThreads, 0, stream>>>(args);
      LOCKSTEP_CUDA_UNARY(CASE)
#undef CASE
      default: throw_unsupported(dtype);
    }
  });
  require_launched("unary");
}

void binary(cudaStream_t stream, PointwiseFunction function, DType dtype, const void* a, const void* b,
            Operand b_is, int64_t row, void* out, int64_t count) {
  if (count == 0) return;
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    const bool packed = aligned16(a) && aligned16(out) && (b_is == Operand::kScalar || aligned16(b)) &&
                        (b_is != Operand::kRow || row % kPack<T> == 0);
    const BinaryArgs args{a, b, out, count, row, b_is, packed};
    switch (function) {
#define CASE(name)              \
  case PointwiseFunction::name: \
    return binary_kernel<Function_##name, T><<<grid_for<T>(count), kThreads, 0, stream>>>(args);
      LOCKSTEP_CUDA_BINARY(CASE)
#undef CASE
      default: throw_unsupported(dtype);
    }
  });
  require_launched("binary");
}

void cast(cudaStream_t stream, DType from_dtype, const void* from, DType to_dtype, void* to, int64_t count) {
  if (count == 0) return;
  const bool packed =
      reinterpret_cast<uintptr_t>(from) % 32 == 0 && reinterpret_cast<uintptr_t>(to) % 32 == 0;
  with_storage(from_dtype, [&](auto from_zero) {
    with_storage(to_dtype, [&](auto to_zero) {
      using From = decltype(from_zero);
      using To = decltype(to_zero);
      cast_kernel<<<blocks_for(ceil_div(count, 8), kThreads), kThreads, 0, stream>>>(
          static_cast<const From*>(from), static_cast<To*>(to), count, packed);
    });
  });
  require_launched("cast");
}

void gated(cudaStream_t stream, Gate gate, DType dtype, const void* gate_up, void* out, int64_t rows,
           int64_t width) {
  if (rows * width == 0) return;
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    const bool packed = width % kPack<T> == 0 && aligned16(gate_up) && aligned16(out);
    with_gate(gate, [&]<Gate kGate>() {
      const auto* from = static_cast<const T*>(gate_up);
      auto* to = static_cast<T*>(out);
      if (packed)
        gated_kernel<T, kGate, kPack<T>>
            <<<gated_grid(rows, width, kPack<T>), kThreads, 0, stream>>>(from, to, rows, width);
      else
        gated_kernel<T, kGate, 1><<<gated_grid(rows, width, 1), kThreads, 0, stream>>>(from, to, rows, width);
    });
  });
  require_launched("gated");
}

void gated_grad(cudaStream_t stream, Gate gate, DType dtype, const void* gate_up, const void* dout,
                void* dgate_up, int64_t rows, int64_t width) {
  if (rows * width == 0) return;
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    const bool packed = width % kPack<T> == 0 && aligned16(gate_up) && aligned16(dout) && aligned16(dgate_up);
    with_gate(gate, [&]<Gate kGate>() {
      const auto* from = static_cast<const T*>(gate_up);
      const auto* dy = static_cast<const T*>(dout);
      auto* to = static_cast<T*>(dgate_up);
      if (packed)
        gated_grad_kernel<T, kGate, kPack<T>>
            <<<gated_grid(rows, width, kPack<T>), kThreads, 0, stream>>>(from, dy, to, rows, width);
      else
        gated_grad_kernel<T, kGate, 1>
            <<<gated_grid(rows, width, 1), kThreads, 0, stream>>>(from, dy, to, rows, width);
    });
  });
  require_launched("gated_grad");
}

}  // namespace lockstep::cuda
