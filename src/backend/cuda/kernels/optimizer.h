// Optimizer updates over flat buffers, and the global norm.
//
// What changes from step to step (scale, lr, step) lies on the device, so that a captured graph replays with
// new values. Buffers are updated in place; the constants of a step are computed in double, as on the host.
#pragma once
#include <span>

#include "backend/cuda/kernels/tables.h"

namespace lockstep::cuda {

struct StepScalars {
  const float* scale;  // multiplies the gradient
  const float* lr;
  const int64_t* step;  // from 1
};

// [begin, end) pairs of elements without weight decay, as a rising list of edges on the device: an element
// with an odd number of edges at or before it does not decay.
struct NoDecay {
  const int64_t* edges;
  int count;
};

struct AdamAttributes {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
};

struct FlatState {
  float* p;
  const float* g;
  float* m;  // momentum of sgd and lion; null for sgd without
  float* v;
  void* p_bf16;  // the parameters rounded to bf16 as well, or null
  int64_t count;
};

void sgd(cudaStream_t stream, const FlatState& state, const StepScalars& scalars, NoDecay no_decay,
         float momentum, bool nesterov, float weight_decay);
// decoupled: adamw, else adam with the decay in the gradient.
void adam(cudaStream_t stream, const FlatState& state, const StepScalars& scalars, NoDecay no_decay,
          const AdamAttributes& attributes, bool decoupled);
void lion(cudaStream_t stream, const FlatState& state, const StepScalars& scalars, NoDecay no_decay,
          const AdamAttributes& attributes);

// The tensors of a flat buffer cut into pieces of at most kLambPiece elements, in order.
inline constexpr int64_t kLambPiece = 4096;
struct LambPiece {
  int64_t begin, end;
  int32_t tensor;
  int32_t decays;
};
struct LambTensor {
  int32_t first_piece, pieces;
};
int64_t lamb_workspace(int64_t pieces, int64_t tensors);
void lamb(cudaStream_t stream, const FlatState& state, const StepScalars& scalars,
          const AdamAttributes& attributes, const LambPiece* pieces, int64_t piece_count,
          const LambTensor* tensors, int64_t tensor_count, void* workspace);

struct AdafactorAttributes {
  double epsilon = 1e-30, clip = 1.0, weight_decay = 0.0;  // weight_decay 0 where the tensor does not decay
};
int64_t adafactor_workspace(int64_t rows, int64_t columns);
void adafactor_matrix(cudaStream_t stream, float* p, const float* g, int64_t rows, int64_t columns,
                      float* row_moment, float* column_moment, const StepScalars& scalars,
                      const AdafactorAttributes& attributes, void* workspace);
void adafactor_vector(cudaStream_t stream, float* p, const float* g, int64_t count, float* moment,
                      const StepScalars& scalars, const AdafactorAttributes& attributes, void* workspace);

// A buffer that a norm is of, f32 or bf16.
struct NormBuffer {
  const void* data;
  DType dtype;
  int64_t count;
};
// The square root of the sum of squares over all buffers: blocks of 1024 elements in double, 64 blocks in
// index order, then these by one tree.
int64_t global_norm_workspace(std::span<const NormBuffer> buffers);
void global_norm(cudaStream_t stream, std::span<const NormBuffer> buffers, float* norm, void* workspace);

// The same in two halves: the sums of all blocks of all buffers, one after another; and the norm from such
// sums, those of a buffer in each operand.
void square_sums(cudaStream_t stream, std::span<const NormBuffer> buffers, double* sums);
int64_t norm_of_squares_workspace(const int64_t* blocks, int buffers);
void norm_of_squares(cudaStream_t stream, const double* const* sums, const int64_t* blocks, int number,
                     float* norm, void* workspace);

struct RowState {
  float *p, *m, *v;
  int32_t* last;
  int64_t rows, columns;
};
// One step of AdamW on rows row_ids[i] >= 0 with gradient row_grads[i].
void adamw_rows(cudaStream_t stream, const RowState& state, const int32_t* row_ids, const float* row_grads,
                int64_t count, const StepScalars& scalars, const AdamAttributes& attributes);
int64_t adamw_catch_up_workspace(int64_t capacity);
// Replays the steps that rows missed, up to step - 1, with a gradient of zero. rows null: all of them.
// lr_history holds `capacity` learning rates, that of step t at t % capacity. A row that missed more is
// written to `bad`.
void adamw_catch_up(cudaStream_t stream, const RowState& state, const SortedIds* sorted, int64_t count,
                    const float* lr_history, int64_t capacity, const int64_t* step,
                    const AdamAttributes& attributes, BadId* bad, void* workspace);

}  // namespace lockstep::cuda
