// SoftmaxLoops: softmax and log-softmax of contiguous rows, and the two cross-entropies with their gradients.
//
// The result may be the same memory as any input of the same shape. Cross-entropy never stores probabilities:
// the forward keeps one log-sum-exp per row, from which the backward rebuilds them.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

struct CrossEntropyRows {
  int64_t classes = 0;
  // A row with this label has loss 0 and gradient 0. Any other label outside [0, classes) gives NaN, which
  // the training guard reports; nothing is read out of bounds.
  int32_t ignore = -100;
  float smoothing = 0.0f;
  // Of rows that have some columns of a longer row: the class of the first, and the classes of all; labels
  // and smoothing are those of the longer row. 0: the row is whole.
  int64_t first = 0;
  int64_t all = 0;
};

// What columns add to the cross-entropy of their row: their maximum, the sum of the exponentials of their
// differences from it, the logit of the label, 0 if it is none of them, and their sum, unless `sum` is null.
// 0, 1, 0 and 0 where the row is ignored.
struct CrossEntropyParts {
  float* highest;
  float* total;
  float* target;
  float* sum;
};

struct SoftmaxLoops {
  void (*softmax)(float* y, const float* x, int64_t rows, int64_t cols);
  void (*softmax_backward)(float* dx, const float* y, const float* dy, int64_t rows, int64_t cols);
  void (*log_softmax)(float* y, const float* x, int64_t rows, int64_t cols);
  void (*log_softmax_backward)(float* dx, const float* y, const float* dy, int64_t rows, int64_t cols);

  // loss[r] = lse[r] - (1-s) x[r][label] - s mean(x[r]), where lse = log sum exp x and s the smoothing.
  void (*cross_entropy)(float* loss, float* lse, const float* logits, const int32_t* labels,
                        const CrossEntropyRows& shape, int64_t rows);
  void (*cross_entropy_part)(const CrossEntropyParts& parts, const float* logits, const int32_t* labels,
                             const CrossEntropyRows& shape, int64_t rows);
  // dlogits = scale * (softmax - (1-s) onehot - s/V).
  void (*cross_entropy_backward)(float* dlogits, const float* logits, const float* lse, const int32_t* labels,
                                 const CrossEntropyRows& shape, float scale, int64_t rows);

  // loss = -t log sigmoid(x) - (1-t) log sigmoid(-x), and its gradient scale * (sigmoid(x) - t).
  void (*binary_cross_entropy)(float* loss, const float* logit, const float* target, int64_t n);
  void (*binary_cross_entropy_backward)(float* dlogit, const float* logit, const float* target, float scale,
                                        int64_t n);
};

namespace avx2 {
extern const SoftmaxLoops softmax_loops;
}
namespace avx512 {
extern const SoftmaxLoops softmax_loops;
}

}  // namespace lockstep::cpu
