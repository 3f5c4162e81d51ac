#include <algorithm>
#include <type_traits>

#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/random.cuh"
#include "backend/cuda/kernels/rounded_update.h"
#include "backend/cuda/kernels/update_rules.cuh"
#include "ops/stochastic_rounding.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 2112;  // so that the constants of a step are computed by few
constexpr int64_t kMostTurns = 16;     // of a run; see kernel
constexpr int kDraws = 4;              // elements of one block of draws

// Where the elements' draws come from, for a thread whose elements rise: a step from one element to the next
// costs a comparison, unless it enters another tensor.
template <int kResults>
class DrawWalk {
 public:
  __device__ __forceinline__ DrawWalk(const Draws& draws, int64_t element) : draws_(draws) {
    int low = 1, high = draws.count;  // the first range behind the element
    while (low < high) {
      const int middle = (low + high) / 2;
      if (draws.ranges[middle].begin <= element)
        low = middle + 1;
      else
        high = middle;
    }
    enter(low - 1);
  }

  __device__ __forceinline__ void reach(int64_t element) {
    if (element < next_) return;
    int at = at_;
    while (at + 1 < draws_.count && draws_.ranges[at + 1].begin <= element) ++at;
    enter(at);
  }

  // Of the block that begins with `element`, which was reached.
  __device__ __forceinline__ uint4 words(int64_t element, int result) const {
    const uint64_t block = static_cast<uint64_t>(element + shift_) / kDraws;
    return philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), streams_[result].x,
                       streams_[result].y},
                      seed_);
  }

 private:
  __device__ void enter(int at) {
    const DrawRange& range = draws_.ranges[at];
    at_ = at;
    shift_ = range.first - range.begin;
    next_ = at + 1 < draws_.count ? draws_.ranges[at + 1].begin : INT64_MAX;
#pragma unroll
    for (int result = 0; result < kResults; ++result) {
      const DevicePhilox random({kRoundingDomain.k0, kRoundingDomain.k1}, range.keys[result],
                                draws_.rounding);
      seed_ = random.seed;
      streams_[result] = random.stream;
    }
  }

  const Draws& draws_;
  int at_;
  int64_t shift_, next_;
  uint2 seed_;
  uint2 streams_[kResults];
};

// Whether elements decay, in the same way.
class DecayWalk {
 public:
  __device__ __forceinline__ DecayWalk(const NoDecay& no_decay, int64_t element)
      : no_decay_(no_decay), passed_(edges_before(no_decay, element)), next_(edge(passed_)) {}

  __device__ __forceinline__ bool decays(int64_t element) {
    while (element >= next_) next_ = edge(++passed_);
    return passed_ % 2 == 0;
  }

 private:
  __device__ __forceinline__ int64_t edge(int i) const {
    return i < no_decay_.count ? no_decay_.edges[i] : INT64_MAX;
  }

  const NoDecay& no_decay_;
  int passed_;
  int64_t next_;
};

// Elements [i, i + N) of a buffer; those behind its end are zero, and not written. packed: it begins at a
// multiple of 16 bytes.
template <typename T, int N>
__device__ __forceinline__ void load_some(const void* buffer, int64_t i, int64_t count, bool packed,
                                          float (&to)[N]) {
  const T* const from = static_cast<const T*>(buffer) + i;
  Pack<T, N> pack{};
  if (packed && i + N <= count) {
    pack = *reinterpret_cast<const Pack<T, N>*>(from);
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k)
      if (i + k < count) pack.v[k] = from[k];
  }
#pragma unroll
  for (int k = 0; k < N; ++k) to[k] = to_float(pack.v[k]);
}

template <typename T, int N>
__device__ __forceinline__ void store_some(void* buffer, int64_t i, int64_t count, bool packed,
                                           const Pack<T, N>& pack) {
  T* const to = static_cast<T*>(buffer) + i;
  if (packed && i + N <= count) {
    *reinterpret_cast<Pack<T, N>*>(to) = pack;
    return;
  }
#pragma unroll
  for (int k = 0; k < N; ++k)
    if (i + k < count) to[k] = pack.v[k];
}

// The draws of `result` for elements [i + quad, i + quad + 4).
template <int N>
__device__ __forceinline__ void round_quad(const float (&x)[N], int quad, const uint4& words,
                                           Pack<uint16_t, N>& to) {
  to.v[quad] = round_stochastically(x[quad], words.x);
  to.v[quad + 1] = round_stochastically(x[quad + 1], words.y);
  to.v[quad + 2] = round_stochastically(x[quad + 2], words.z);
  to.v[quad + 3] = round_stochastically(x[quad + 3], words.w);
}

template <int N>
__device__ __forceinline__ Pack<float, N> as_floats(const float (&x)[N]) {
  Pack<float, N> pack;
#pragma unroll
  for (int k = 0; k < N; ++k) pack.v[k] = x[k];
  return pack;
}

// A block takes runs of neighbouring elements, `turns` steps of all its threads each: long enough that
// tensors and edges of decay are looked up seldom, short enough that all blocks work in one part of the
// buffers.
template <typename Rule, typename Moment, bool kM, bool kV>
__global__ void __launch_bounds__(kThreads, 3) kernel(Rule rule, RoundedState state, StepScalars scalars,
                                                      NoDecay no_decay, Draws draws, int turns, bool packed) {
  constexpr bool kRounded = kM && std::is_same_v<Moment, bf16>;  // the moments
  constexpr int kWidth = kM ? kPack<Moment> : kPack<bf16>;
  constexpr int kStep = kThreads * kWidth;
  __shared__ typename Rule::Step shared_step;
  if (threadIdx.x == 0) shared_step = rule.step(scalars);
  __syncthreads();
  const typename Rule::Step step = shared_step;
  const int64_t count = state.count, run = int64_t{turns} * kStep;
  for (int64_t begin = int64_t{blockIdx.x} * run; begin < count; begin += int64_t{gridDim.x} * run) {
    const int64_t end = min(count, begin + run);
    int64_t i = begin + int64_t{threadIdx.x} * kWidth;
    DrawWalk<kRounded ? (kV ? 3 : 2) : 1> draw(draws, i);
    DecayWalk decay(no_decay, i);
    for (; i < end; i += kStep) {
      float p[kWidth], g[kWidth], m[kWidth], v[kWidth];
      load_some<bf16>(state.p.old_values, i, count, packed, p);
      load_some<bf16>(state.g, i, count, packed, g);
      if constexpr (kM) load_some<Moment>(state.m.old_values, i, count, packed, m);
      if constexpr (kV) load_some<Moment>(state.v.old_values, i, count, packed, v);
#pragma unroll
      for (int k = 0; k < kWidth; ++k)
        p[k] = rule.apply(step, p[k], g[k], kM ? &m[k] : nullptr, kV ? &v[k] : nullptr, decay.decays(i + k));
      Pack<uint16_t, kWidth> p_new, m_new, v_new;
#pragma unroll
      for (int quad = 0; quad < kWidth; quad += kDraws) {
        draw.reach(i + quad);
        round_quad(p, quad, draw.words(i + quad, 0), p_new);
        if constexpr (kRounded) round_quad(m, quad, draw.words(i + quad, 1), m_new);
        if constexpr (kRounded && kV) round_quad(v, quad, draw.words(i + quad, 2), v_new);
      }
      store_some(state.p.new_values, i, count, packed, p_new);
      if constexpr (kRounded) {
        store_some(state.m.new_values, i, count, packed, m_new);
        if constexpr (kV) store_some(state.v.new_values, i, count, packed, v_new);
      } else {
        if constexpr (kM) store_some(state.m.new_values, i, count, packed, as_floats(m));
        if constexpr (kV) store_some(state.v.new_values, i, count, packed, as_floats(v));
      }
    }
  }
}

bool is_packed(const RoundedState& state) {
  const auto aligned = [](const Updated& buffer) {
    return aligned16(buffer.old_values) && aligned16(buffer.new_values);
  };
  return aligned(state.p) && aligned16(state.g) && aligned(state.m) && aligned(state.v);
}

template <typename Moment, bool kM, bool kV, typename Rule>
void run(cudaStream_t stream, const Rule& rule, const RoundedState& state, const StepScalars& scalars,
         NoDecay no_decay, const Draws& draws) {
  constexpr int64_t kStep = kThreads * (kM ? kPack<Moment> : kPack<bf16>);
  const int64_t turns = std::clamp<int64_t>(state.count / kStep / kMostBlocks, 1, kMostTurns);
  kernel<Rule, Moment, kM, kV><<<blocks_for(state.count, turns * kStep, kMostBlocks), kThreads, 0, stream>>>(
      rule, state, scalars, no_decay, draws, static_cast<int>(turns), is_packed(state));
  require_launched("a rounded update");
}

template <bool kV, typename Rule>
void run_with_moments(cudaStream_t stream, const Rule& rule, const RoundedState& state,
                      const StepScalars& scalars, NoDecay no_decay, const Draws& draws) {
  if (state.moments == DType::kBF16)
    return run<bf16, true, kV>(stream, rule, state, scalars, no_decay, draws);
  require_that(state.moments == DType::kF32, "moments are f32 or bf16");
  run<float, true, kV>(stream, rule, state, scalars, no_decay, draws);
}

}  // namespace

void rounded_sgd(cudaStream_t stream, const RoundedState& state, const StepScalars& scalars, NoDecay no_decay,
                 const Draws& draws, float momentum, bool nesterov, float weight_decay) {
  if (state.count == 0) return;
  const SgdRule rule{momentum, weight_decay, nesterov};
  if (state.m.new_values == nullptr)
    return run<bf16, false, false>(stream, rule, state, scalars, no_decay, draws);
  run_with_moments<false>(stream, rule, state, scalars, no_decay, draws);
}

void rounded_adam(cudaStream_t stream, const RoundedState& state, const StepScalars& scalars,
                  NoDecay no_decay, const Draws& draws, const AdamAttributes& attributes, bool decoupled) {
  if (state.count == 0) return;
  if (decoupled)
    run_with_moments<true>(stream, AdamRule<true>{attributes}, state, scalars, no_decay, draws);
  else
    run_with_moments<true>(stream, AdamRule<false>{attributes}, state, scalars, no_decay, draws);
}

void rounded_lion(cudaStream_t stream, const RoundedState& state, const StepScalars& scalars,
                  NoDecay no_decay, const Draws& draws, const AdamAttributes& attributes) {
  if (state.count == 0) return;
  run_with_moments<false>(stream, LionRule{attributes}, state, scalars, no_decay, draws);
}

}  // namespace lockstep::cuda
