// One row belongs to a team of warps, which holds it in registers between the sums and the result: each
// tensor is read once and written once. Which team fits follows from the number of columns.
#include "backend/cuda/kernels/column_sums.h"
#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/row_norm.h"
#include "backend/cuda/kernels/row_team.cuh"

namespace lockstep::cuda {
namespace {

template <typename T, bool kCentered, int kWarps, int kPacks>
__global__ void __launch_bounds__(kTeamThreads<kWarps>)
    forward_kernel(RowNormForward a, int64_t rows, int columns, bool float_parameters) {
  using Row = RowTeam<T, kWarps, kPacks>;
  __shared__ float scratch[Row::kTeams][kWarps];
  const Row team(rows, columns);
  float x[kPacks][kPack<T>];
  team.load(static_cast<const T*>(a.x), x);
  if (a.residual != nullptr) {
    float other[kPacks][kPack<T>];
    team.load(static_cast<const T*>(a.residual), other);
    team.each([&](int p, int i) { x[p][i] = to_float(from_float<T>(x[p][i] + other[p][i])); });
    team.store(static_cast<T*>(a.sum), x);
  }
  const float inverse_count = 1.0f / static_cast<float>(columns);
  float mean = 0;
  if constexpr (kCentered) {
    float sum = 0;
    team.each([&](int p, int i) { sum += x[p][i]; });
    mean = team.sum(sum, scratch) * inverse_count;
  }
  float squares = 0;
  team.each([&](int p, int i) {
    const float d = x[p][i] - mean;
    squares = fmaf(d, d, squares);
  });
  const float variance = team.sum(squares, scratch) * inverse_count;
  const float rstd = 1.0f / sqrtf(variance + a.epsilon);
  if (team.first_lane()) {
    if constexpr (kCentered) a.mean[team.row] = mean;
    a.rstd[team.row] = rstd;
  }
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    if (!team.has(p)) continue;
    float weight[kPack<T>], bias[kPack<T>];
    load_parameters<T>(a.weight, float_parameters, team.column(p), weight);
    if constexpr (kCentered) load_parameters<T>(a.bias, float_parameters, team.column(p), bias);
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i) {
      const float h = (x[p][i] - mean) * rstd;
      x[p][i] = kCentered ? fmaf(h, weight[i], bias[i]) : h * weight[i];
    }
  }
  team.store(static_cast<T*>(a.y), x);
}

// Rows of any length: a block per row, which reads it again for each sum.
template <typename T, bool kCentered>
__global__ void __launch_bounds__(256)
    forward_any_kernel(RowNormForward a, int columns, bool float_parameters) {
  const int64_t first = int64_t{blockIdx.x} * columns;
  const auto* x = static_cast<const T*>(a.x) + first;
  if (a.residual != nullptr) {
    const auto* residual = static_cast<const T*>(a.residual) + first;
    auto* sum = static_cast<T*>(a.sum) + first;
    for (int i = threadIdx.x; i < columns; i += 256)
      sum[i] = from_float<T>(to_float(x[i]) + to_float(residual[i]));
    x = sum;  // each thread reads what it wrote itself
  }
  const float inverse_count = 1.0f / static_cast<float>(columns);
  float mean = 0;
  if constexpr (kCentered) {
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += 256) sum += to_float(x[i]);
    mean = block_all<256>(sum) * inverse_count;
  }
  float squares = 0;
  for (int i = threadIdx.x; i < columns; i += 256) {
    const float d = to_float(x[i]) - mean;
    squares = fmaf(d, d, squares);
  }
  const float rstd = 1.0f / sqrtf(block_all<256>(squares) * inverse_count + a.epsilon);
  if (threadIdx.x == 0) {
    if constexpr (kCentered) a.mean[blockIdx.x] = mean;
    a.rstd[blockIdx.x] = rstd;
  }
  for (int i = threadIdx.x; i < columns; i += 256) {
    const float h = (to_float(x[i]) - mean) * rstd;
    const float weight = load_parameter<T>(a.weight, float_parameters, i);
    const float y = kCentered ? fmaf(h, weight, load_parameter<T>(a.bias, float_parameters, i)) : h * weight;
    static_cast<T*>(a.y)[first + i] = from_float<T>(y);
  }
}

template <typename T, bool kCentered>
void forward(cudaStream_t stream, const RowNormShape& s, const RowNormForward& a) {
  const int columns = static_cast<int>(s.columns);
  const bool taken =
      aligned16(a.x) && aligned16(a.y) && aligned16(a.weight) && aligned16(a.residual) && aligned16(a.sum) &&
      aligned16(a.bias) && with_row_team<T, 4>(s.columns, [&]<int kWarps, int kPacks>() {
        forward_kernel<T, kCentered, kWarps, kPacks>
            <<<blocks_for(s.rows, kTeamsPerBlock<kWarps>, INT32_MAX), kTeamThreads<kWarps>, 0, stream>>>(
                a, s.rows, columns, s.float_parameters);
      });
  if (!taken)
    forward_any_kernel<T, kCentered>
        <<<static_cast<unsigned>(s.rows), 256, 0, stream>>>(a, columns, s.float_parameters);
  require_launched("row_norm");
}

}  // namespace

void row_norm(cudaStream_t stream, const RowNormShape& shape, const RowNormForward& args) {
  if (shape.rows == 0) return;
  with_storage(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    shape.centered ? forward<T, true>(stream, shape, args) : forward<T, false>(stream, shape, args);
  });
}

}  // namespace lockstep::cuda
