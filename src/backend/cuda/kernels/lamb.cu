// lamb in three kernels: moments and the sums of squares per piece; the trust ratio per tensor from its
// pieces in index order; the step, for which the update is computed again from the moments.
#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/optimizer_steps.cuh"
#include "backend/cuda/kernels/sums.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ float update_of(const AdamStep& s, float p, float m, float v, bool decays) {
  const float adam = m * s.inv_bias1 / fmaf(sqrtf(v), s.inv_sqrt_bias2, s.eps);
  return decays ? fmaf(s.weight_decay, p, adam) : adam;
}

__global__ void __launch_bounds__(kThreads)
    moments_kernel(FlatState state, StepScalars scalars, AdamAttributes attributes, const LambPiece* pieces,
                   double2* squares) {
  __shared__ AdamStep step;
  if (threadIdx.x == 0) step = AdamStep::at(attributes, *scalars.step, *scalars.scale, *scalars.lr);
  __syncthreads();
  const LambPiece piece = pieces[blockIdx.x];
  double p_squares = 0, u_squares = 0;
  for (int64_t i = piece.begin + threadIdx.x; i < piece.end; i += kThreads) {
    const float gradient = state.g[i] * step.grad_scale;
    const float m = fmaf(step.beta1, state.m[i], step.one_minus_beta1 * gradient);
    const float v = fmaf(step.beta2, state.v[i], step.one_minus_beta2 * gradient * gradient);
    state.m[i] = m;
    state.v[i] = v;
    const double p = state.p[i], u = update_of(step, state.p[i], m, v, piece.decays != 0);
    p_squares = fma(p, p, p_squares);
    u_squares = fma(u, u, u_squares);
  }
  p_squares = block_all<kThreads>(p_squares);
  u_squares = block_all<kThreads>(u_squares);
  if (threadIdx.x == 0) squares[blockIdx.x] = {p_squares, u_squares};
}

__global__ void __launch_bounds__(kThreads)
    trust_kernel(const LambTensor* tensors, const double2* squares, const float* lr, float* lr_trust) {
  const LambTensor tensor = tensors[blockIdx.x];
  double p = 0, u = 0;
  for (int i = threadIdx.x; i < tensor.pieces; i += kThreads) {
    p += squares[tensor.first_piece + i].x;
    u += squares[tensor.first_piece + i].y;
  }
  p = sqrt(block_all<kThreads>(p));
  u = sqrt(block_all<kThreads>(u));
  const double rate = *lr;
  if (threadIdx.x == 0) lr_trust[blockIdx.x] = static_cast<float>(p > 0.0 && u > 0.0 ? rate * (p / u) : rate);
}

__global__ void __launch_bounds__(kThreads)
    apply_kernel(FlatState state, StepScalars scalars, AdamAttributes attributes, const LambPiece* pieces,
                 const float* lr_trust) {
  __shared__ AdamStep step;
  if (threadIdx.x == 0) step = AdamStep::at(attributes, *scalars.step, *scalars.scale, *scalars.lr);
  __syncthreads();
  const LambPiece piece = pieces[blockIdx.x];
  const float rate = lr_trust[piece.tensor];
  for (int64_t i = piece.begin + threadIdx.x; i < piece.end; i += kThreads) {
    const float old = state.p[i];
    const float p = fmaf(-rate, update_of(step, old, state.m[i], state.v[i], piece.decays != 0), old);
    state.p[i] = p;
    if (state.p_bf16 != nullptr) static_cast<bf16*>(state.p_bf16)[i] = from_float<bf16>(p);
  }
}

}  // namespace

int64_t lamb_workspace(int64_t pieces, int64_t tensors) {
  return pieces * int64_t{sizeof(double2)} + tensors * int64_t{sizeof(float)};
}

void lamb(cudaStream_t stream, const FlatState& state, const StepScalars& scalars,
          const AdamAttributes& attributes, const LambPiece* pieces, int64_t piece_count,
          const LambTensor* tensors, int64_t tensor_count, void* workspace) {
  if (piece_count == 0) return;
  auto* squares = static_cast<double2*>(workspace);
  auto* lr_trust = reinterpret_cast<float*>(squares + piece_count);
  const auto blocks = static_cast<unsigned>(piece_count);
  moments_kernel<<<blocks, kThreads, 0, stream>>>(state, scalars, attributes, pieces, squares);
  trust_kernel<<<static_cast<unsigned>(tensor_count), kThreads, 0, stream>>>(tensors, squares, scalars.lr,
                                                                             lr_trust);
  apply_kernel<<<blocks, kThreads, 0, stream>>>(state, scalars, attributes, pieces, lr_trust);
  require_launched("lamb");
}

}  // namespace lockstep::cuda
