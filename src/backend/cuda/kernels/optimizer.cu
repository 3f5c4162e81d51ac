// sgd, adam, adamw, lion: four elements per thread and turn, one launch over the whole buffer.
#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/optimizer.h"
#include "backend/cuda/kernels/optimizer_steps.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 2112;  // so that the constants of a step are computed by few

struct SgdStep {
  float grad_scale, lr, momentum, weight_decay;
};

struct Sgd {
  float momentum, weight_decay;
  bool nesterov;
  using Step = SgdStep;
  __device__ Step step(const StepScalars& s) const { return {*s.scale, *s.lr, momentum, weight_decay}; }
  __device__ __forceinline__ float apply(const Step& s, float p, float g, float* m, float*,
                                         bool decays) const {
    const float gradient = decays ? fmaf(s.weight_decay, p, g * s.grad_scale) : g * s.grad_scale;
    float direction = gradient;
    if (m != nullptr) {
      *m = fmaf(s.momentum, *m, gradient);
      direction = nesterov ? fmaf(s.momentum, *m, gradient) : *m;
    }
    return fmaf(-s.lr, direction, p);
  }
};

template <bool kDecoupled>
struct Adam {
  AdamAttributes attributes;
  using Step = AdamStep;
  __device__ Step step(const StepScalars& s) const {
    return AdamStep::at(attributes, *s.step, *s.scale, *s.lr);
  }
  __device__ __forceinline__ float apply(const Step& s, float p, float g, float* m, float* v,
                                         bool decays) const {
    const AdamElement now = adam_update<kDecoupled>({p, *m, *v}, g, s, decays);
    *m = now.m;
    *v = now.v;
    return now.p;
  }
};

struct Lion {
  AdamAttributes attributes;
  struct Step {
    float grad_scale, beta1, one_minus_beta1, beta2, one_minus_beta2, lr, decay;
  };
  __device__ Step step(const StepScalars& s) const {
    const double lr = *s.lr;
    return {*s.scale,
            static_cast<float>(attributes.beta1),
            static_cast<float>(1.0 - attributes.beta1),
            static_cast<float>(attributes.beta2),
            static_cast<float>(1.0 - attributes.beta2),
            *s.lr,
            static_cast<float>(1.0 - lr * attributes.weight_decay)};
  }
  __device__ __forceinline__ float apply(const Step& s, float p, float g, float* m, float*,
                                         bool decays) const {
    const float gradient = g * s.grad_scale;
    const float direction = fmaf(s.beta1, *m, s.one_minus_beta1 * gradient);
    *m = fmaf(s.beta2, *m, s.one_minus_beta2 * gradient);
    const float move = direction > 0.0f ? s.lr : direction < 0.0f ? -s.lr : 0.0f;
    return (decays ? p * s.decay : p) - move;
  }
};

template <typename Rule, bool kM, bool kV>
__global__ void __launch_bounds__(kThreads)
    update_kernel(Rule rule, FlatState state, StepScalars scalars, NoDecay no_decay) {
  __shared__ typename Rule::Step shared_step;
  if (threadIdx.x == 0) shared_step = rule.step(scalars);
  __syncthreads();
  const typename Rule::Step step = shared_step;
  const int64_t whole = state.count / 4;
  for (int64_t q = int64_t{blockIdx.x} * kThreads + threadIdx.x; q < whole;
       q += int64_t{gridDim.x} * kThreads) {
    const int64_t i = q * 4;
    Pack<float> p = load_pack(state.p + i), m{}, v{};
    const Pack<float> g = load_pack(state.g + i);
    if constexpr (kM) m = load_pack(state.m + i);
    if constexpr (kV) v = load_pack(state.v + i);
    int edges = edges_before(no_decay, i);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      while (edges < no_decay.count && no_decay.edges[edges] <= i + k) ++edges;
      p.v[k] =
          rule.apply(step, p.v[k], g.v[k], kM ? &m.v[k] : nullptr, kV ? &v.v[k] : nullptr, edges % 2 == 0);
    }
    store_pack(state.p + i, p);
    if constexpr (kM) store_pack(state.m + i, m);
    if constexpr (kV) store_pack(state.v + i, v);
    if (state.p_bf16 != nullptr) {
      Pack<bf16, 4> rounded;
#pragma unroll
      for (int k = 0; k < 4; ++k) rounded.v[k] = from_float<bf16>(p.v[k]);
      *reinterpret_cast<Pack<bf16, 4>*>(static_cast<bf16*>(state.p_bf16) + i) = rounded;
    }
  }
  const int64_t tail = whole * 4 + threadIdx.x;
  if (blockIdx.x != 0 || tail >= state.count) return;
  float m = kM ? state.m[tail] : 0.0f, v = kV ? state.v[tail] : 0.0f;
  const float p = rule.apply(step, state.p[tail], state.g[tail], kM ? &m : nullptr, kV ? &v : nullptr,
                             edges_before(no_decay, tail) % 2 == 0);
  state.p[tail] = p;
  if constexpr (kM) state.m[tail] = m;
  if constexpr (kV) state.v[tail] = v;
  if (state.p_bf16 != nullptr) static_cast<bf16*>(state.p_bf16)[tail] = from_float<bf16>(p);
}

unsigned grid_for(int64_t count) { return blocks_for(ceil_div(count, 4), kThreads, kMostBlocks); }

}  // namespace

void sgd(cudaStream_t stream, const FlatState& state, const StepScalars& scalars, NoDecay no_decay,
         float momentum, bool nesterov, float weight_decay) {
  if (state.count == 0) return;
  const Sgd rule{momentum, weight_decay, nesterov};
  if (state.m != nullptr)
    update_kernel<Sgd, true, false>
        <<<grid_for(state.count), kThreads, 0, stream>>>(rule, state, scalars, no_decay);
  else
    update_kernel<Sgd, false, false>
        <<<grid_for(state.count), kThreads, 0, stream>>>(rule, state, scalars, no_decay);
  require_launched("sgd");
}

void adam(cudaStream_t stream, const FlatState& state, const StepScalars& scalars, NoDecay no_decay,
          const AdamAttributes& attributes, bool decoupled) {
  if (state.count == 0) return;
  if (decoupled)
    update_kernel<Adam<true>, true, true>
        <<<grid_for(state.count), kThreads, 0, stream>>>(Adam<true>{attributes}, state, scalars, no_decay);
  else
    update_kernel<Adam<false>, true, true>
        <<<grid_for(state.count), kThreads, 0, stream>>>(Adam<false>{attributes}, state, scalars, no_decay);
  require_launched("adam");
}

void lion(cudaStream_t stream, const FlatState& state, const StepScalars& scalars, NoDecay no_decay,
          const AdamAttributes& attributes) {
  if (state.count == 0) return;
  update_kernel<Lion, true, false>
      <<<grid_for(state.count), kThreads, 0, stream>>>(Lion{attributes}, state, scalars, no_decay);
  require_launched("lion");
}

}  // namespace lockstep::cuda
