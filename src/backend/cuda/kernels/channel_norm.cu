// Memory is the limit: forward reads x twice and writes y, backward reads x and dy twice and writes dx. A
// thread keeps to its channels, so that what belongs to a channel stays in registers.
#include "backend/cuda/kernels/channel_norm.h"
#include "backend/cuda/kernels/element.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlocks = 396;  // that sum parts: as many as run at once on 132 multiprocessors
constexpr int64_t kLeastRows = 64;
constexpr int kAcross = 32, kDown = 16;  // channels and threads per channel where the parts are added
constexpr int64_t kMostBlocks = 1056;    // so that what belongs to a channel is loaded for many elements

// Threads across the channels of a block that sums a part, N channels each; the others go down the rows.
dim3 part_block(int64_t channels, int width) {
  unsigned across = 1;
  while (across < 32 && int64_t{across} * width < channels) across *= 2;
  return dim3(across, kThreads / across);
}
unsigned blocks_across(int64_t channels, int width) {
  return blocks_for(channels, int64_t{part_block(channels, width).x} * width);
}

// How the rows are cut. It follows from the shape alone, since sums depend on it: from the width of full
// packs, also where addresses allow none.
struct Parts {
  int64_t rows, count;
  explicit Parts(const ChannelNormShape& s) {
    const int width = 16 / static_cast<int>(size_of(s.dtype));
    const int64_t most = ceil_div(kBlocks, int64_t{blocks_across(s.channels, width)});
    const int64_t even = ceil_div(s.rows, most);
    rows = even < kLeastRows ? kLeastRows : even;
    count = ceil_div(s.rows, rows);
  }
};

dim3 part_grid(const ChannelNormShape& s, const Parts& parts, int width) {
  return dim3(blocks_across(s.channels, width), static_cast<unsigned>(parts.count));
}

__device__ __forceinline__ float2 plus(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }

// Two sums per channel and part. add(row, sums) adds what N channels of the row give.
template <int N, typename Add>
__device__ __forceinline__ void sum_part(int64_t rows, int64_t channels, int64_t channel,
                                         int64_t rows_per_part, const Add& add, float2* partials) {
  __shared__ float2 sums[kThreads * N];
  const int64_t begin = int64_t{blockIdx.y} * rows_per_part, end = min(rows, begin + rows_per_part);
  float2 sum[N] = {};
  if (channel < channels) {
#pragma unroll 4
    for (int64_t r = begin + threadIdx.y; r < end; r += blockDim.y) add(r, sum);
  }
  const int width = static_cast<int>(blockDim.x) * N;
#pragma unroll
  for (int i = 0; i < N; ++i) sums[threadIdx.y * width + threadIdx.x * N + i] = sum[i];
  // A tree over the rows of threads, whose number is a power of two.
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y >= half) continue;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      sum[i] = plus(sum[i], sums[(threadIdx.y + half) * width + threadIdx.x * N + i]);
      sums[threadIdx.y * width + threadIdx.x * N + i] = sum[i];
    }
  }
  if (threadIdx.y != 0 || channel >= channels) return;
#pragma unroll
  for (int i = 0; i < N; ++i) partials[int64_t{blockIdx.y} * channels + channel + i] = sum[i];
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    moments_kernel(const T* x, int64_t rows, int64_t channels, int64_t rows_per_part, float2* partials) {
  const int64_t channel = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N;
  float shift[N];
#pragma unroll
  for (int i = 0; i < N; ++i) shift[i] = channel < channels ? to_float(x[channel + i]) : 0.0f;
  sum_part<N>(
      rows, channels, channel, rows_per_part,
      [&](int64_t r, float2(&sum)[N]) {
        const auto pack = *reinterpret_cast<const Pack<T, N>*>(x + r * channels + channel);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const float d = to_float(pack.v[i]) - shift[i];
          sum[i] = {sum[i].x + d, fmaf(d, d, sum[i].y)};
        }
      },
      partials);
}

// The parts of one channel: kDown threads add every kDown-th, then their sums are added in order. All threads
// of the block take part; the result is that of the first thread of a channel.
__device__ __forceinline__ double2 add_parts(const float2* partials, int64_t parts, int64_t channels,
                                             int64_t channel) {
  __shared__ double2 sums[kDown][kAcross];
  double2 sum{0, 0};
  if (channel < channels) {
#pragma unroll 4
    for (int64_t p = threadIdx.y; p < parts; p += kDown) {
      const float2 part = partials[p * channels + channel];
      sum = {sum.x + part.x, sum.y + part.y};
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0)
    for (int k = 1; k < kDown; ++k) sum = {sum.x + sums[k][threadIdx.x].x, sum.y + sums[k][threadIdx.x].y};
  return sum;
}

template <typename T>
__global__ void __launch_bounds__(kAcross* kDown)
    statistics_kernel(const T* x, const float2* partials, int64_t parts, int64_t rows, int64_t channels,
                      ChannelNormForward a) {
  const int64_t c = int64_t{blockIdx.x} * kAcross + threadIdx.x;
  const double2 sum = add_parts(partials, parts, channels, c);
  if (threadIdx.y != 0 || c >= channels) return;
  const auto n = static_cast<double>(rows);
  const double offset = sum.x / n;
  double variance = sum.y / n - offset * offset;
  if (variance < 0) variance = 0;
  a.variance[c] = static_cast<float>(variance * n / (n - 1));
  a.mean[c] = static_cast<float>(to_float(x[c]) + offset);
  a.rstd[c] = static_cast<float>(1.0 / sqrt(variance + a.epsilon));
}

__global__ void __launch_bounds__(kThreads) running_kernel(int64_t channels, ChannelNormForward a) {
  const int64_t c = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (c >= channels) return;
  a.mean[c] = a.running_mean[c];
  a.rstd[c] = static_cast<float>(1.0 / sqrt(static_cast<double>(a.running_variance[c]) + a.epsilon));
}

struct Whole {
  int64_t count;
  int64_t channels;
  bool float_parameters;
};

// What belongs to a channel.
template <typename T>
struct Channel {
  float mean, rstd, scale, bias;  // scale: the weight times rstd
  __device__ __forceinline__ float normal(float x) const { return (x - mean) * rstd; }
  __device__ __forceinline__ float result(float x) const { return fmaf(x - mean, scale, bias); }
};
template <typename T, typename Args>
__device__ __forceinline__ Channel<T> channel_of(const Args& a, const Whole& w, int64_t c) {
  const float rstd = a.rstd[c];
  return {a.mean[c], rstd, load_parameter<T>(a.weight, w.float_parameters, c) * rstd,
          a.bias == nullptr ? 0.0f : load_parameter<T>(a.bias, w.float_parameters, c)};
}

// N floats as they are stored: pairs of bf16 by one instruction.
template <typename T, int N>
__device__ __forceinline__ Pack<T, N> stored(const float (&x)[N]) {
  Pack<T, N> pack;
#pragma unroll
  for (int k = 0; k < N; ++k) pack.v[k] = from_float<T>(x[k]);
  return pack;
}
template <>
__device__ __forceinline__ Pack<bf16, 8> stored<bf16, 8>(const float (&x)[8]) {
  Pack<bf16, 8> pack;
  auto* pairs = reinterpret_cast<__nv_bfloat162*>(pack.v);
#pragma unroll
  for (int k = 0; k < 4; ++k) pairs[k] = __floats2bfloat162_rn(x[2 * k], x[2 * k + 1]);
  return pack;
}

// Where a thread begins and how far it goes on, in packs of N elements.
template <typename T, int N>
struct Sweep {
  int64_t first, step;
  __device__ Sweep()
      : first((int64_t{blockIdx.x} * kThreads + threadIdx.x) * N), step(int64_t{gridDim.x} * kThreads * N) {}
};

template <typename T, int N, bool kFixed, bool kRelu>
__global__ void __launch_bounds__(kThreads) normalise_kernel(ChannelNormForward a, Whole w) {
  const auto* x = static_cast<const T*>(a.x);
  auto* y = static_cast<T*>(a.y);
  const Sweep<T, N> sweep;
  Channel<T> mine[N];
  const auto find = [&](int64_t i) {
    const int64_t c = i % w.channels;
#pragma unroll
    for (int k = 0; k < N; ++k) mine[k] = channel_of<T>(a, w, c + k);
  };
  if (sweep.first >= w.count) return;
  if (kFixed) find(sweep.first);
  const auto write = [&](int64_t i, const Pack<T, N>& pack) {
    if (!kFixed) find(i);
    float results[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float result = mine[k].result(to_float(pack.v[k]));
      results[k] = kRelu && result < 0.0f ? 0.0f : result;
    }
    *reinterpret_cast<Pack<T, N>*>(y + i) = stored<T, N>(results);
  };
  // Two at a time: the second is on its way while the first is written. y may be x.
  for (int64_t i = sweep.first; i < w.count; i += 2 * sweep.step) {
    const int64_t j = i + sweep.step;
    const Pack<T, N> one = *reinterpret_cast<const Pack<T, N>*>(x + i);
    Pack<T, N> two{};
    if (j < w.count) two = *reinterpret_cast<const Pack<T, N>*>(x + j);
    write(i, one);
    if (j < w.count) write(j, two);
  }
}

// dy where it counts: zero where the relu was closed.
template <bool kRelu, typename T>
__device__ __forceinline__ float open_gradient(const Channel<T>& channel, float dy, float x) {
  return kRelu && channel.result(x) <= 0.0f ? 0.0f : dy;
}

template <typename T, int N, bool kRelu>
__global__ void __launch_bounds__(kThreads) gradient_sums_kernel(ChannelNormBackward a, Whole w, int64_t rows,
                                                                 int64_t rows_per_part, float2* partials) {
  const auto* x = static_cast<const T*>(a.x);
  const auto* dy = static_cast<const T*>(a.dy);
  const int64_t channel = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N;
  Channel<T> mine[N];
#pragma unroll
  for (int i = 0; i < N; ++i) mine[i] = channel_of<T>(a, w, min(channel + i, w.channels - 1));
  sum_part<N>(
      rows, w.channels, channel, rows_per_part,
      [&](int64_t r, float2(&sum)[N]) {
        const auto xs = *reinterpret_cast<const Pack<T, N>*>(x + r * w.channels + channel);
        const auto ds = *reinterpret_cast<const Pack<T, N>*>(dy + r * w.channels + channel);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const float value = to_float(xs.v[i]);
          const float d = open_gradient<kRelu>(mine[i], to_float(ds.v[i]), value);
          sum[i] = {fmaf(d, mine[i].normal(value), sum[i].x), sum[i].y + d};
        }
      },
      partials);
}

template <typename T>
__global__ void __launch_bounds__(kAcross* kDown)
    gradient_totals_kernel(ChannelNormBackward a, Whole w, const float2* partials, int64_t parts,
                           float2* totals) {
  const int64_t c = int64_t{blockIdx.x} * kAcross + threadIdx.x;
  const double2 sum = add_parts(partials, parts, w.channels, c);
  if (threadIdx.y != 0 || c >= w.channels) return;
  totals[c] = {static_cast<float>(sum.x), static_cast<float>(sum.y)};
  store_parameter<T>(a.dweight, w.float_parameters, c, totals[c].x);
  store_parameter<T>(a.dbias, w.float_parameters, c, totals[c].y);
}

template <typename T, int N, bool kFixed, bool kRelu>
__global__ void __launch_bounds__(kThreads)
    gradient_kernel(ChannelNormBackward a, Whole w, const float2* totals, float share) {
  const auto* x = static_cast<const T*>(a.x);
  const auto* dy = static_cast<const T*>(a.dy);
  auto* dx = static_cast<T*>(a.dx);
  const Sweep<T, N> sweep;
  Channel<T> mine[N];
  float2 total[N];
  const auto find = [&](int64_t i) {
    const int64_t c = i % w.channels;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      mine[k] = channel_of<T>(a, w, c + k);
      total[k] = totals[c + k];
    }
  };
  if (sweep.first >= w.count) return;
  if (kFixed) find(sweep.first);
  const auto write = [&](int64_t i, const Pack<T, N>& xs, const Pack<T, N>& ds) {
    if (!kFixed) find(i);
    float results[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float value = to_float(xs.v[k]);
      const float d = open_gradient<kRelu>(mine[k], to_float(ds.v[k]), value);
      const float pulled = share * (total[k].y + mine[k].normal(value) * total[k].x);
      results[k] = mine[k].scale * (d - pulled);
    }
    *reinterpret_cast<Pack<T, N>*>(dx + i) = stored<T, N>(results);
  };
  // Two at a time, as above. dx may be x or dy.
  for (int64_t i = sweep.first; i < w.count; i += 2 * sweep.step) {
    const int64_t j = i + sweep.step;
    const auto x1 = *reinterpret_cast<const Pack<T, N>*>(x + i);
    const auto d1 = *reinterpret_cast<const Pack<T, N>*>(dy + i);
    Pack<T, N> x2{}, d2{};
    if (j < w.count) {
      x2 = *reinterpret_cast<const Pack<T, N>*>(x + j);
      d2 = *reinterpret_cast<const Pack<T, N>*>(dy + j);
    }
    write(i, x1, d1);
    if (j < w.count) write(j, x2, d2);
  }
}

template <typename T>
bool packed(const ChannelNormShape& s, const void* a, const void* b, const void* c) {
  return s.channels % kPack<T> == 0 && aligned16(a) && aligned16(b) && aligned16(c);
}

// Calls body.operator()<N, kFixed, kRelu>(blocks).
template <typename T, bool kRelu, typename Body>
void with_sweep(const Whole& w, bool wide, const Body& body) {
  const int width = wide ? kPack<T> : 1;
  const unsigned blocks = blocks_for(w.count, int64_t{kThreads} * width, kMostBlocks);
  const bool fixed = int64_t{blocks} * kThreads * width % w.channels == 0;
  if (wide && fixed) return body.template operator()<kPack<T>, true, kRelu>(blocks);
  if (wide) return body.template operator()<kPack<T>, false, kRelu>(blocks);
  if (fixed) return body.template operator()<1, true, kRelu>(blocks);
  return body.template operator()<1, false, kRelu>(blocks);
}

// Calls body.operator()<T, kRelu>().
template <typename Body>
void with_kind(const ChannelNormShape& s, const Body& body) {
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (s.relu)
      body.template operator()<T, true>();
    else
      body.template operator()<T, false>();
  });
}

}  // namespace

int64_t channel_norm_workspace(const ChannelNormShape& s) {
  return (Parts(s).count + 1) * s.channels * int64_t{sizeof(float2)};
}

void channel_norm(cudaStream_t stream, const ChannelNormShape& s, const ChannelNormForward& a,
                  void* workspace) {
  if (s.rows * s.channels == 0) return;
  auto* partials = static_cast<float2*>(workspace);
  const Parts parts(s);
  with_kind(s, [&]<typename T, bool kRelu>() {
    const auto* x = static_cast<const T*>(a.x);
    const bool wide = packed<T>(s, a.x, a.y, nullptr);
    const int width = wide ? kPack<T> : 1;
    if (s.training) {
      const auto moments = wide ? moments_kernel<T, kPack<T>> : moments_kernel<T, 1>;
      moments<<<part_grid(s, parts, width), part_block(s.channels, width), 0, stream>>>(x, s.rows, s.channels,
                                                                                        parts.rows, partials);
      statistics_kernel<<<blocks_for(s.channels, kAcross), dim3(kAcross, kDown), 0, stream>>>(
          x, partials, parts.count, s.rows, s.channels, a);
    } else {
      running_kernel<<<blocks_for(s.channels, kThreads), kThreads, 0, stream>>>(s.channels, a);
    }
    const Whole whole{s.rows * s.channels, s.channels, s.float_parameters};
    with_sweep<T, kRelu>(whole, wide, [&]<int N, bool kFixed, bool kR>(unsigned blocks) {
      normalise_kernel<T, N, kFixed, kR><<<blocks, kThreads, 0, stream>>>(a, whole);
    });
  });
  require_launched("channel_norm");
}

void channel_norm_grad(cudaStream_t stream, const ChannelNormShape& s, const ChannelNormBackward& a,
                       void* workspace) {
  if (s.rows * s.channels == 0) return;
  auto* totals = static_cast<float2*>(workspace);
  float2* partials = totals + s.channels;
  const Parts parts(s);
  const float share = s.training ? 1.0f / static_cast<float>(s.rows) : 0.0f;
  with_kind(s, [&]<typename T, bool kRelu>() {
    const bool wide = packed<T>(s, a.x, a.dy, a.dx);
    const int width = wide ? kPack<T> : 1;
    const Whole whole{s.rows * s.channels, s.channels, s.float_parameters};
    const auto sums = wide ? gradient_sums_kernel<T, kPack<T>, kRelu> : gradient_sums_kernel<T, 1, kRelu>;
    sums<<<part_grid(s, parts, width), part_block(s.channels, width), 0, stream>>>(a, whole, s.rows,
                                                                                   parts.rows, partials);
    gradient_totals_kernel<T><<<blocks_for(s.channels, kAcross), dim3(kAcross, kDown), 0, stream>>>(
        a, whole, partials, parts.count, totals);
    with_sweep<T, kRelu>(whole, wide, [&]<int N, bool kFixed, bool kR>(unsigned blocks) {
      gradient_kernel<T, N, kFixed, kR><<<blocks, kThreads, 0, stream>>>(a, whole, totals, share);
    });
  });
  require_launched("channel_norm_grad");
}

}  // namespace lockstep::cuda
