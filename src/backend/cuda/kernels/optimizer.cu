// sgd, adam, adamw, lion of f32 buffers: four elements per thread and turn, one launch over the whole buffer.
#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/optimizer.h"
#include "backend/cuda/kernels/update_rules.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 2112;  // so that the constants of a step are computed by few

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
  const SgdRule rule{momentum, weight_decay, nesterov};
  if (state.m != nullptr)
    update_kernel<SgdRule, true, false>
        <<<grid_for(state.count), kThreads, 0, stream>>>(rule, state, scalars, no_decay);
  else
    update_kernel<SgdRule, false, false>
        <<<grid_for(state.count), kThreads, 0, stream>>>(rule, state, scalars, no_decay);
  require_launched("sgd");
}

void adam(cudaStream_t stream, const FlatState& state, const StepScalars& scalars, NoDecay no_decay,
          const AdamAttributes& attributes, bool decoupled) {
  if (state.count == 0) return;
  if (decoupled)
    update_kernel<AdamRule<true>, true, true><<<grid_for(state.count), kThreads, 0, stream>>>(
        AdamRule<true>{attributes}, state, scalars, no_decay);
  else
    update_kernel<AdamRule<false>, true, true><<<grid_for(state.count), kThreads, 0, stream>>>(
        AdamRule<false>{attributes}, state, scalars, no_decay);
  require_launched("adam");
}

void lion(cudaStream_t stream, const FlatState& state, const StepScalars& scalars, NoDecay no_decay,
          const AdamAttributes& attributes) {
  if (state.count == 0) return;
  update_kernel<LionRule, true, false>
      <<<grid_for(state.count), kThreads, 0, stream>>>(LionRule{attributes}, state, scalars, no_decay);
  require_launched("lion");
}

}  // namespace lockstep::cuda
