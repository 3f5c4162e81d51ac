// AdamW on single rows of a table: the step itself, and the steps that rows missed. The arithmetic of an
// element is that of the dense update, so that a row ends with the same bits either way.
#include "backend/cuda/kernels/optimizer_steps.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 128;

__device__ __forceinline__ void update_at(const RowState& state, int64_t i, float gradient,
                                          const AdamStep& step) {
  const AdamElement now = adam_update<true>({state.p[i], state.m[i], state.v[i]}, gradient, step, true);
  state.p[i] = now.p;
  state.m[i] = now.m;
  state.v[i] = now.v;
}

__global__ void __launch_bounds__(kThreads)
    rows_kernel(RowState state, const int32_t* row_ids, const float* row_grads, StepScalars scalars,
                AdamAttributes attributes) {
  const int64_t row = row_ids[blockIdx.x];
  if (row < 0) return;
  __shared__ AdamStep step;
  if (threadIdx.x == 0) {
    step = AdamStep::at(attributes, *scalars.step, *scalars.scale, *scalars.lr);
    state.last[row] = static_cast<int32_t>(*scalars.step);
  }
  __syncthreads();
  for (int64_t k = threadIdx.x; k < state.columns; k += kThreads)
    update_at(state, row * state.columns + k, row_grads[blockIdx.x * state.columns + k], step);
}

// The constants of the steps that lr_history still covers: entry t % capacity.
__global__ void steps_kernel(const float* lr_history, int64_t capacity, const int64_t* step,
                             AdamAttributes attributes, AdamStep* steps) {
  const int64_t slot = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (slot >= capacity) return;
  const int64_t now = *step - 1;
  const int64_t t = now - ((now - slot) % capacity + capacity) % capacity;  // the latest step with this slot
  if (t >= 1) steps[slot] = AdamStep::at(attributes, t, 1.0f, lr_history[slot]);
}

__global__ void __launch_bounds__(kThreads)
    catch_up_kernel(RowState state, const int32_t* sorted_rows, int64_t capacity, const int64_t* step,
                    const AdamStep* steps, BadId* bad) {
  const int64_t i = blockIdx.x;
  const int64_t row = sorted_rows == nullptr ? i : sorted_rows[i];
  if (row >= state.rows) return;
  if (sorted_rows != nullptr && i > 0 && sorted_rows[i - 1] == row) return;
  const int64_t now = *step - 1, last = state.last[row];
  if (now - last > capacity) {
    if (threadIdx.x == 0) atomicMin(&bad->position, static_cast<unsigned long long>(row));
    return;
  }
  for (int64_t k = threadIdx.x; k < state.columns; k += kThreads)
    for (int64_t t = last + 1; t <= now; ++t)
      update_at(state, row * state.columns + k, 0.0f, steps[t % capacity]);
  __syncthreads();
  if (threadIdx.x == 0) state.last[row] = static_cast<int32_t>(now);
}

}  // namespace

void adamw_rows(cudaStream_t stream, const RowState& state, const int32_t* row_ids, const float* row_grads,
                int64_t count, const StepScalars& scalars, const AdamAttributes& attributes) {
  if (count == 0) return;
  rows_kernel<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(state, row_ids, row_grads, scalars,
                                                                     attributes);
  require_launched("adamw_rows");
}

int64_t adamw_catch_up_workspace(int64_t capacity) { return capacity * int64_t{sizeof(AdamStep)}; }

void adamw_catch_up(cudaStream_t stream, const RowState& state, const SortedIds* sorted, int64_t count,
                    const float* lr_history, int64_t capacity, const int64_t* step,
                    const AdamAttributes& attributes, BadId* bad, void* workspace) {
  const int64_t blocks = sorted == nullptr ? state.rows : count;
  if (blocks == 0) return;
  auto* steps = static_cast<AdamStep*>(workspace);
  steps_kernel<<<blocks_for(capacity, 128, INT32_MAX), 128, 0, stream>>>(lr_history, capacity, step,
                                                                         attributes, steps);
  catch_up_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      state, sorted == nullptr ? nullptr : sorted->rows, capacity, step, steps, bad);
  require_launched("adamw_catch_up");
}

}  // namespace lockstep::cuda
