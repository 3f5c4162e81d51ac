// Softmax rows and cross-entropies. See softmax_loops.h.
#include "backend/cpu/simd/softmax_loops.h"

#include "backend/cpu/simd/lanes.h"
#include "backend/cpu/simd/math.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// Sum of e^(x - pivot). Lanes beyond a tail hold -infinity and so add 0.
inline float sum_exp(const float* x, float pivot, int64_t n) {
  return sum_lanes(
      n, [=](int64_t i, auto lanes) { return exp(load_or(x + i, lanes, broadcast(-kInfinity)) - pivot); });
}

void softmax(float* y, const float* x, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const float highest = max_of(x, cols);
    const float total = sum_lanes(cols, [=](int64_t i, auto lanes) {
      const Vec e = exp(load_or(x + i, lanes, broadcast(-kInfinity)) - highest);
      store(y + i, e, lanes);
      return e;
    });
    const float inverse = 1.0f / total;
    for_lanes(cols, [=](int64_t i, auto lanes) { store(y + i, load(y + i, lanes) * inverse, lanes); });
  }
}

void softmax_backward(float* dx, const float* y, const float* dy, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, dx += cols, y += cols, dy += cols) {
    const float dot =
        sum_lanes(cols, [=](int64_t i, auto lanes) { return load(y + i, lanes) * load(dy + i, lanes); });
    for_lanes(cols, [=](int64_t i, auto lanes) {
      store(dx + i, load(y + i, lanes) * (load(dy + i, lanes) - dot), lanes);
    });
  }
}

void log_softmax(float* y, const float* x, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const float highest = max_of(x, cols);
    const float log_total = log(sum_exp(x, highest, cols));
    for_lanes(cols, [=](int64_t i, auto lanes) {
      store(y + i, (load(x + i, lanes) - highest) - log_total, lanes);
    });
  }
}

void log_softmax_backward(float* dx, const float* y, const float* dy, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, dx += cols, y += cols, dy += cols) {
    const float total = sum_lanes(cols, [=](int64_t i, auto lanes) { return load(dy + i, lanes); });
    for_lanes(cols, [=](int64_t i, auto lanes) {
      store(dx + i, load(dy + i, lanes) - exp(load(y + i, lanes)) * total, lanes);
    });
  }
}

struct RowStatistics {
  float highest = -kInfinity;
  float sum_exp = 0.0f;  // of x - highest
  float sum = 0.0f;
};

// One sweep over the row in blocks that fit the first cache: the maximum of a block, then its exponentials
// against the running maximum, the earlier sum being rescaled when that rises.
RowStatistics row_statistics(const float* x, int64_t n, bool need_sum) {
  constexpr int64_t kBlock = 2048;
  RowStatistics row;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t size = n - begin < kBlock ? n - begin : kBlock;
    const float* block = x + begin;
    const float block_max = max_of(block, size);
    if (block_max > row.highest) {
      // Before the first finite element the sum is 0, or a NaN that must survive: there is nothing to
      // rescale.
      if (row.highest != -kInfinity) row.sum_exp *= exp(row.highest - block_max);
      row.highest = block_max;
    }
    // Subtracting an infinite maximum would turn masked logits into NaN.
    const float pivot = row.highest == -kInfinity ? 0.0f : row.highest;
    row.sum_exp += sum_exp(block, pivot, size);
    if (need_sum) row.sum += sum_lanes(size, [=](int64_t i, auto lanes) { return load(block + i, lanes); });
  }
  return row;
}

inline int64_t all_classes(const CrossEntropyRows& shape) {
  return shape.all > 0 ? shape.all : shape.classes;
}
inline bool valid(int32_t label, const CrossEntropyRows& shape) {
  return label >= 0 && label < all_classes(shape);
}

void cross_entropy(float* loss, float* lse, const float* logits, const int32_t* labels,
                   const CrossEntropyRows& shape, int64_t rows) {
  const float s = shape.smoothing;
  for (int64_t r = 0; r < rows; ++r, logits += shape.classes) {
    const int32_t label = labels[r];
    if (label == shape.ignore) {
      loss[r] = lse[r] = 0.0f;
      continue;
    }
    const RowStatistics row = row_statistics(logits, shape.classes, s != 0.0f);
    const float log_total = log(row.sum_exp);
    lse[r] = row.highest + log_total;
    if (!valid(label, shape)) {
      loss[r] = kNaN;
      continue;
    }
    // Differences from the maximum are taken first: they are exact where the loss is small.
    loss[r] = log_total + (1.0f - s) * (row.highest - logits[label]);
    if (s != 0.0f) loss[r] += s * (row.highest - row.sum / static_cast<float>(shape.classes));
  }
}

void cross_entropy_part(const CrossEntropyParts& parts, const float* logits, const int32_t* labels,
                        const CrossEntropyRows& shape, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, logits += shape.classes) {
    RowStatistics row{0.0f, 1.0f, 0.0f};
    float target = 0.0f;
    if (labels[r] != shape.ignore) {
      row = row_statistics(logits, shape.classes, parts.sum != nullptr);
      const int64_t column = labels[r] - shape.first;
      if (!valid(labels[r], shape))
        target = kNaN;
      else if (column >= 0 && column < shape.classes)
        target = logits[column];
    }
    parts.highest[r] = row.highest;
    parts.total[r] = row.sum_exp;
    parts.target[r] = target;
    if (parts.sum != nullptr) parts.sum[r] = row.sum;
  }
}

void cross_entropy_backward(float* dlogits, const float* logits, const float* lse, const int32_t* labels,
                            const CrossEntropyRows& shape, float scale, int64_t rows) {
  const int64_t n = shape.classes;
  const Vec uniform = broadcast(-scale * shape.smoothing / static_cast<float>(all_classes(shape)));
  const float target = scale * (1.0f - shape.smoothing);
  for (int64_t r = 0; r < rows; ++r, dlogits += n, logits += n) {
    const int32_t label = labels[r];
    if (label == shape.ignore || !valid(label, shape)) {
      const Vec value = broadcast(label == shape.ignore ? 0.0f : kNaN);
      for_lanes(n, [=](int64_t i, auto lanes) { store(dlogits + i, value, lanes); });
      continue;
    }
    const float row_lse = lse[r];
    for_lanes(n, [=](int64_t i, auto lanes) {
      const Vec p = exp(load(logits + i, lanes) - row_lse);
      store(dlogits + i, fma(p, broadcast(scale), uniform), lanes);
    });
    const int64_t column = label - shape.first;
    if (column >= 0 && column < n) dlogits[column] -= target;
  }
}

void binary_cross_entropy(float* loss, const float* logit, const float* target, int64_t n) {
  for_lanes(n, [=](int64_t i, auto lanes) {
    const Vec x = load(logit + i, lanes);
    const Vec linear = max(zero(), x) - x * load(target + i, lanes);
    store(loss + i, linear + log1p_exp_minus_abs(x), lanes);
  });
}

void binary_cross_entropy_backward(float* dlogit, const float* logit, const float* target, float scale,
                                   int64_t n) {
  for_lanes(n, [=](int64_t i, auto lanes) {
    store(dlogit + i, (sigmoid(load(logit + i, lanes)) - load(target + i, lanes)) * scale, lanes);
  });
}

}  // namespace

extern const SoftmaxLoops softmax_loops = {softmax,
                                           softmax_backward,
                                           log_softmax,
                                           log_softmax_backward,
                                           cross_entropy,
                                           cross_entropy_part,
                                           cross_entropy_backward,
                                           binary_cross_entropy,
                                           binary_cross_entropy_backward};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
