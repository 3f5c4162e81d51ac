// One sweep over the rows gives dx and, per fixed chunk of rows, partial sums of the parameters' gradients,
// which a second kernel adds in chunk order. The number of chunks is a constant: it is part of the bits.
#include "backend/cuda/kernels/column_sums.h"
#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/row_norm.h"
#include "backend/cuda/kernels/row_team.cuh"

namespace lockstep::cuda {
namespace {

constexpr int64_t kMostChunks = 264;  // two per multiprocessor of an H200

int64_t chunk_rows(int64_t rows) { return ceil_div(rows, kMostChunks); }
int64_t chunk_count(int64_t rows) { return ceil_div(rows, chunk_rows(rows)); }

// Teams of three warps divide a block too.
template <int kWarps>
inline constexpr int kThreadsOf = kWarps == 3  ? 288
                                  : kWarps < 8 ? 256
                                               : 32 * kWarps;

// What a thread reads of one row, as it is stored. Where registers suffice it is read while the row before is
// computed: the barriers of a team's sums would hold up its loads.
template <typename T, int kPacks>
struct StoredRow {
  Pack<T> dy[kPacks], x[kPacks], residual[kPacks];
  float mean, rstd;

  template <bool kCentered, typename Team>
  __device__ __forceinline__ void load(const Team& team, const RowNormBackward& a) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      dy[p] = x[p] = residual[p] = {};
      if (!team.has(p)) continue;
      const int64_t at = team.row * team.columns + team.column(p);
      dy[p] = load_pack(static_cast<const T*>(a.dy) + at);
      x[p] = load_pack(static_cast<const T*>(a.x) + at);
      if (a.residual != nullptr) residual[p] = load_pack(static_cast<const T*>(a.residual) + at);
    }
    mean = kCentered && team.alive ? a.mean[team.row] : 0.0f;
    rstd = team.alive ? a.rstd[team.row] : 0.0f;
  }
};

template <typename T, bool kCentered, int kWarps, int kPacks>
__global__ void __launch_bounds__(kThreadsOf<kWarps>, kThreadsOf<kWarps> < 512 ? 2 : 1)
    backward_kernel(RowNormBackward a, int64_t rows, int64_t rows_per_chunk, int columns,
                    bool float_parameters, float* partials) {
  constexpr int kTeams = kThreadsOf<kWarps> / (32 * kWarps);
  constexpr bool kAhead = kPacks == 1;
  extern __shared__ float total[];  // dweight, then dbias of the chunk, where several teams share it
  __shared__ float2 scratch[2][kTeams][kWarps];
  RowTeam<T, kWarps, kPacks> team(rows, columns);
  const int64_t begin = int64_t{blockIdx.x} * rows_per_chunk;
  const int64_t end = min(rows, begin + rows_per_chunk);
  const float inverse_count = 1.0f / static_cast<float>(columns);
  float weight[kPacks][kPack<T>], dweight[kPacks][kPack<T>] = {}, dbias[kPacks][kPack<T>] = {};
#pragma unroll
  for (int p = 0; p < kPacks; ++p)
    if (team.column(p) < columns) load_parameters<T>(a.weight, float_parameters, team.column(p), weight[p]);
  StoredRow<T, kPacks> now, next;
  team.move_to(begin + team.team, end);
  if constexpr (kAhead) next.template load<kCentered>(team, a);
  int turn = 0;
  for (int64_t row = begin; row < end; row += kTeams, turn ^= 1) {
    if constexpr (kAhead) {
      now = next;
      team.move_to(row + kTeams + team.team, end);
      next.template load<kCentered>(team, a);
    }
    team.move_to(row + team.team, end);
    if constexpr (!kAhead) now.template load<kCentered>(team, a);
    // Made again after the barrier: two registers less per element.
    const auto gradient = [&](int p, int i) { return to_float(now.dy[p].v[i]); };
    const auto normalised = [&](int p, int i) { return (to_float(now.x[p].v[i]) - now.mean) * now.rstd; };
    float2 sums{0, 0};
    team.each([&](int p, int i) {
      const float dy = gradient(p, i), h = normalised(p, i), g = dy * weight[p][i];
      if constexpr (kCentered) sums.x += g;
      sums.y = fmaf(g, h, sums.y);
      dweight[p][i] = fmaf(dy, h, dweight[p][i]);
      if constexpr (kCentered) dbias[p][i] += dy;
    });
    sums = team_sums<kWarps>(sums, scratch[turn][team.team], team.thread / 32);
    const float mean_g = sums.x * inverse_count, mean_gh = sums.y * inverse_count;
    float dx[kPacks][kPack<T>];
    team.each([&](int p, int i) {
      dx[p][i] = now.rstd * (gradient(p, i) * weight[p][i] - mean_g - normalised(p, i) * mean_gh);
      if (a.residual != nullptr)
        dx[p][i] = to_float(from_float<T>(dx[p][i])) + to_float(now.residual[p].v[i]);
    });
    team.store(static_cast<T*>(a.dx), dx);
  }
  float* out = partials + int64_t{blockIdx.x} * (kCentered ? 2 : 1) * columns;
  // Teams add what they hold one after another.
  for (int adding = 0; adding < kTeams; ++adding) {
    if (kTeams > 1) __syncthreads();
    if (team.team != adding) continue;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int column = team.column(p);
      if (column >= columns) continue;
#pragma unroll
      for (int i = 0; i < kPack<T>; ++i) {
        float w = dweight[p][i], b = dbias[p][i];
        if (adding > 0) {
          w = total[column + i] + w;
          if constexpr (kCentered) b = total[columns + column + i] + b;
        }
        float* to = adding + 1 < kTeams ? total : out;
        to[column + i] = w;
        if constexpr (kCentered) to[columns + column + i] = b;
      }
    }
  }
}

// Rows of any length: a block per chunk; each thread adds its columns of every row to the chunk's partial
// sums.
template <typename T, bool kCentered>
__global__ void __launch_bounds__(256)
    backward_any_kernel(RowNormBackward a, int64_t rows, int64_t rows_per_chunk, int columns,
                        bool float_parameters, float* partials) {
  float* dweight = partials + int64_t{blockIdx.x} * (kCentered ? 2 : 1) * columns;
  for (int i = threadIdx.x; i < (kCentered ? 2 : 1) * columns; i += 256) dweight[i] = 0;
  __syncthreads();
  const int64_t begin = int64_t{blockIdx.x} * rows_per_chunk;
  const int64_t end = min(rows, begin + rows_per_chunk);
  const float inverse_count = 1.0f / static_cast<float>(columns);
  for (int64_t row = begin; row < end; ++row) {
    const auto* dy = static_cast<const T*>(a.dy) + row * columns;
    const auto* x = static_cast<const T*>(a.x) + row * columns;
    auto* dx = static_cast<T*>(a.dx) + row * columns;
    const float mean = kCentered ? a.mean[row] : 0.0f;
    const float rstd = a.rstd[row];
    float sum_g = 0, sum_gh = 0;
    for (int i = threadIdx.x; i < columns; i += 256) {
      const float h = (to_float(x[i]) - mean) * rstd;
      const float g = to_float(dy[i]) * load_parameter<T>(a.weight, float_parameters, i);
      sum_g += g;
      sum_gh = fmaf(g, h, sum_gh);
    }
    const float mean_g = kCentered ? block_all<256>(sum_g) * inverse_count : 0.0f;
    const float mean_gh = block_all<256>(sum_gh) * inverse_count;
    for (int i = threadIdx.x; i < columns; i += 256) {
      const float h = (to_float(x[i]) - mean) * rstd;
      const float d = to_float(dy[i]);
      dweight[i] = fmaf(d, h, dweight[i]);
      if constexpr (kCentered) dweight[columns + i] += d;
      float result = rstd * (d * load_parameter<T>(a.weight, float_parameters, i) - mean_g - h * mean_gh);
      if (a.residual != nullptr)
        result =
            to_float(from_float<T>(result)) + to_float(static_cast<const T*>(a.residual)[row * columns + i]);
      dx[i] = from_float<T>(result);
    }
  }
}

template <typename T, bool kCentered>
void backward(cudaStream_t stream, const RowNormShape& s, const RowNormBackward& a, float* partials) {
  const int columns = static_cast<int>(s.columns);
  const int64_t per_chunk = chunk_rows(s.rows);
  const auto chunks = static_cast<unsigned>(chunk_count(s.rows));
  const bool taken =
      aligned16(a.dy) && aligned16(a.x) && aligned16(a.dx) && aligned16(a.weight) && aligned16(a.residual) &&
      with_row_team<T, 1>(s.columns, [&]<int kWarps, int kPacks>() {
        const size_t shared = kWarps < 8 ? size_t{kCentered ? 2 : 1} * columns * sizeof(float) : 0;
        backward_kernel<T, kCentered, kWarps, kPacks><<<chunks, kThreadsOf<kWarps>, shared, stream>>>(
            a, s.rows, per_chunk, columns, s.float_parameters, partials);
      });
  if (!taken)
    backward_any_kernel<T, kCentered>
        <<<chunks, 256, 0, stream>>>(a, s.rows, per_chunk, columns, s.float_parameters, partials);
  require_launched("row_norm_grad");
}

}  // namespace

int64_t row_norm_grad_workspace(const RowNormShape& shape) {
  if (shape.rows == 0) return 0;
  return chunk_count(shape.rows) * (shape.centered ? 2 : 1) * shape.columns * int64_t{sizeof(float)};
}

void row_norm_grad(cudaStream_t stream, const RowNormShape& shape, const RowNormBackward& args,
                   void* workspace) {
  const DType parameter = shape.float_parameters ? DType::kF32 : shape.dtype;
  auto* partials = static_cast<float*>(workspace);
  if (shape.rows > 0)
    with_storage(shape.dtype, [&](auto zero) {
      using T = decltype(zero);
      shape.centered ? backward<T, true>(stream, shape, args, partials)
                     : backward<T, false>(stream, shape, args, partials);
    });
  const int64_t parts = shape.rows == 0 ? 0 : chunk_count(shape.rows);
  const int64_t stride = (shape.centered ? 2 : 1) * shape.columns;
  sum_partials(stream, partials, parts, stride, shape.columns, 1.0f, parameter, args.dweight);
  if (shape.centered)
    sum_partials(stream, partials + shape.columns, parts, stride, shape.columns, 1.0f, parameter, args.dbias);
}

}  // namespace lockstep::cuda
