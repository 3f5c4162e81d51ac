// adafactor: for a matrix, means of squares by rows and by columns, their factors, the size of the update,
// the step. Sums over rows and over the whole tensor are in double; columns are summed in float over fixed
// units of rows.
#include "backend/cuda/kernels/optimizer.h"
#include "backend/cuda/kernels/sums.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kUnitRows = 32;
constexpr int64_t kPiece = 4096;

struct Step {
  float grad_scale, beta2, one_minus_beta2, eps;
};

// t^(-4/5) through a fifth root by Newton's iteration from above, which falls until rounding stops it.
__device__ Step step_at(const StepScalars& s, double eps) {
  const auto t = static_cast<double>(*s.step);
  double x = t > 1.0 ? t : 1.0;
  for (;;) {
    const double next = (4.0 * x + t / (x * x * x * x)) / 5.0;
    if (next >= x) break;
    x = next;
  }
  const double rest = 1.0 / (x * x * x * x);
  return {*s.scale, static_cast<float>(1.0 - rest), static_cast<float>(rest), static_cast<float>(eps)};
}

__device__ Step shared_step(const StepScalars& s, double eps) {
  __shared__ Step step;
  if (threadIdx.x == 0) step = step_at(s, eps);
  __syncthreads();
  return step;
}

__global__ void __launch_bounds__(kThreads)
    rows_kernel(const float* g, int64_t columns, StepScalars scalars, double eps, float* row_moment) {
  const Step step = shared_step(scalars, eps);
  const float* row = g + int64_t{blockIdx.x} * columns;
  double squares = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    const double x = row[i] * step.grad_scale;
    squares = fma(x, x, squares);
  }
  squares = block_all<kThreads>(squares);
  if (threadIdx.x != 0) return;
  const auto mean = static_cast<float>(squares / static_cast<double>(columns) + step.eps);
  row_moment[blockIdx.x] = fmaf(step.beta2, row_moment[blockIdx.x], step.one_minus_beta2 * mean);
}

__global__ void __launch_bounds__(kThreads)
    column_units_kernel(const float* g, int64_t rows, int64_t columns, StepScalars scalars, double eps,
                        float* sums) {
  const float scale = *scalars.scale, epsilon = static_cast<float>(eps);
  const int64_t column = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column >= columns) return;
  const int64_t begin = int64_t{blockIdx.y} * kUnitRows, end = min(rows, begin + kUnitRows);
  float sum = 0;
  for (int64_t r = begin; r < end; ++r) {
    const float x = g[r * columns + column] * scale;
    sum += fmaf(x, x, epsilon);
  }
  sums[int64_t{blockIdx.y} * columns + column] = sum;
}

__global__ void __launch_bounds__(kThreads)
    columns_kernel(const float* sums, int64_t units, int64_t rows, int64_t columns, StepScalars scalars,
                   double eps, float* column_moment, float* column_factor) {
  const Step step = shared_step(scalars, eps);
  const int64_t column = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
  for (int64_t u = 0; u < units; ++u) sum += sums[u * columns + column];
  const auto weight = static_cast<float>(step.one_minus_beta2 / static_cast<double>(rows));
  const float moment = fmaf(step.beta2, column_moment[column], weight * sum);
  column_moment[column] = moment;
  column_factor[column] = 1.0f / sqrtf(moment);
}

__global__ void __launch_bounds__(1024)
    row_factors_kernel(const float* row_moment, int64_t rows, float* row_factor) {
  double sum = 0;
  for (int64_t r = threadIdx.x; r < rows; r += 1024) sum += row_moment[r];
  const auto mean = static_cast<float>(block_all<1024>(sum) / static_cast<double>(rows));
  for (int64_t r = threadIdx.x; r < rows; r += 1024) row_factor[r] = 1.0f / sqrtf(row_moment[r] / mean);
}

__global__ void __launch_bounds__(kThreads)
    vector_moment_kernel(const float* g, int64_t count, StepScalars scalars, double eps, float* moment) {
  const Step step = shared_step(scalars, eps);
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const float x = g[i] * step.grad_scale;
  moment[i] = fmaf(step.beta2, moment[i], step.one_minus_beta2 * fmaf(x, x, step.eps));
}

// The update of element i: of a matrix by its factors, of a vector (columns 0) by its moment.
struct Update {
  const float* g;
  const float* scale;
  const float* row_factor;
  const float* column_factor;
  const float* moment;
  int64_t columns;
  __device__ __forceinline__ float at(int64_t i) const {
    const float x = g[i] * *scale;
    if (columns == 0) return x * (1.0f / sqrtf(moment[i]));
    return x * (row_factor[i / columns] * column_factor[i % columns]);
  }
};

__global__ void __launch_bounds__(kThreads) squares_kernel(Update update, int64_t count, double* partials) {
  const int64_t begin = int64_t{blockIdx.x} * kPiece, end = min(count, begin + kPiece);
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const double u = update.at(i);
    sum = fma(u, u, sum);
  }
  sum = block_all<kThreads>(sum);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(1024) size_kernel(const double* partials, int64_t pieces, int64_t count,
                                                    const float* lr, AdafactorAttributes a, float2* size) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < pieces; i += 1024) sum += partials[i];
  sum = block_all<1024>(sum);
  if (threadIdx.x != 0) return;
  const double rms = sqrt(sum / static_cast<double>(count)), ratio = rms / a.clip, rate = *lr;
  *size = {static_cast<float>(rate / (ratio > 1.0 ? ratio : 1.0)),
           static_cast<float>(1.0 - rate * a.weight_decay)};
}

__global__ void __launch_bounds__(kThreads)
    apply_kernel(Update update, int64_t count, const float2* size, float* p) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) p[i] = p[i] * size->y - update.at(i) * size->x;
}

void apply_update(cudaStream_t stream, const Update& update, int64_t count, const StepScalars& scalars,
                  const AdafactorAttributes& a, double* partials, float2* size, float* p) {
  const int64_t pieces = ceil_div(count, kPiece);
  squares_kernel<<<static_cast<unsigned>(pieces), kThreads, 0, stream>>>(update, count, partials);
  size_kernel<<<1, 1024, 0, stream>>>(partials, pieces, count, scalars.lr, a, size);
  apply_kernel<<<blocks_for(count, kThreads, INT32_MAX), kThreads, 0, stream>>>(update, count, size, p);
  require_launched("adafactor");
}

}  // namespace

int64_t adafactor_workspace(int64_t rows, int64_t columns) {
  const int64_t units = ceil_div(rows, kUnitRows);
  return ceil_div(rows * columns, kPiece) * int64_t{sizeof(double)} + int64_t{sizeof(float2)} +
         (rows + columns + units * columns) * int64_t{sizeof(float)};
}

void adafactor_matrix(cudaStream_t stream, float* p, const float* g, int64_t rows, int64_t columns,
                      float* row_moment, float* column_moment, const StepScalars& scalars,
                      const AdafactorAttributes& a, void* workspace) {
  const int64_t units = ceil_div(rows, kUnitRows);
  auto* partials = static_cast<double*>(workspace);
  auto* size = reinterpret_cast<float2*>(partials + ceil_div(rows * columns, kPiece));
  auto* row_factor = reinterpret_cast<float*>(size + 1);
  float* column_factor = row_factor + rows;
  float* sums = column_factor + columns;
  const unsigned across = blocks_for(columns, kThreads);
  rows_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(g, columns, scalars, a.epsilon,
                                                                    row_moment);
  column_units_kernel<<<dim3(across, static_cast<unsigned>(units)), kThreads, 0, stream>>>(
      g, rows, columns, scalars, a.epsilon, sums);
  columns_kernel<<<across, kThreads, 0, stream>>>(sums, units, rows, columns, scalars, a.epsilon,
                                                  column_moment, column_factor);
  row_factors_kernel<<<1, 1024, 0, stream>>>(row_moment, rows, row_factor);
  const Update update{g, scalars.scale, row_factor, column_factor, nullptr, columns};
  apply_update(stream, update, rows * columns, scalars, a, partials, size, p);
}

void adafactor_vector(cudaStream_t stream, float* p, const float* g, int64_t count, float* moment,
                      const StepScalars& scalars, const AdafactorAttributes& a, void* workspace) {
  if (count == 0) return;
  auto* partials = static_cast<double*>(workspace);
  auto* size = reinterpret_cast<float2*>(partials + ceil_div(count, kPiece));
  vector_moment_kernel<<<blocks_for(count, kThreads, INT32_MAX), kThreads, 0, stream>>>(g, count, scalars,
                                                                                        a.epsilon, moment);
  apply_update(stream, Update{g, scalars.scale, nullptr, nullptr, moment, 0}, count, scalars, a, partials,
               size, p);
}

}  // namespace lockstep::cuda
