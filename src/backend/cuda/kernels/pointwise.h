// Pointwise ops one by one, casts, and the gated activations whose fused form every transformer needs.
//
// Regions of several ops and other broadcasts are generated at run time (backend/cuda/fused_source.h).
#pragma once
#include <optional>
#include <string_view>

#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

#define LOCKSTEP_CUDA_UNARY(X) \
  X(copy)                      \
  X(neg)                       \
  X(abs)                       \
  X(sign) X(sqrt) X(rsqrt) X(exp) X(log) X(tanh) X(erf) X(sigmoid) X(relu) X(silu) X(gelu_erf) X(gelu_tanh)
#define LOCKSTEP_CUDA_BINARY(X) \
  X(add) X(sub) X(mul) X(div) X(minimum) X(maximum) X(pow) X(silu_grad) X(gelu_erf_grad) X(gelu_tanh_grad)

enum class PointwiseFunction : uint8_t {
#define NAME(name) name,
  LOCKSTEP_CUDA_UNARY(NAME) LOCKSTEP_CUDA_BINARY(NAME)
#undef NAME
};

// How the second operand of a binary op is read.
enum class Operand : uint8_t {
  kFull,    // one element each
  kScalar,  // one element for all
  kRow,     // `row` elements, again and again: a bias
};

void unary(cudaStream_t stream, PointwiseFunction function, DType dtype, const void* a, void* out,
           int64_t count);
void binary(cudaStream_t stream, PointwiseFunction function, DType dtype, const void* a, const void* b,
            Operand b_is, int64_t row, void* out, int64_t count);

// Between the floating types; f32 to f32 copies.
void cast(cudaStream_t stream, DType from_dtype, const void* from, DType to_dtype, void* to, int64_t count);

// A gated MLP's activation: gate_up is [rows, 2 width], the gates first; out[r, i] = f(gate) * up, with
// f(gate) rounded to dtype first, as two ops would.
enum class Gate : uint8_t { kSilu, kGeluTanh, kGeluErf };
void gated(cudaStream_t stream, Gate gate, DType dtype, const void* gate_up, void* out, int64_t rows,
           int64_t width);
void gated_grad(cudaStream_t stream, Gate gate, DType dtype, const void* gate_up, const void* dout,
                void* dgate_up, int64_t rows, int64_t width);

}  // namespace lockstep::cuda
