#include "train/sums/power_sums.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "comm/leaf_stack.h"
#include "comm/simd/sum_loops.h"

namespace lockstep {
namespace {

constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

// In eight partial sums, added in a fixed order.
float dot(const float* a, const float* b, int64_t n) {
  float sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int64_t j = 0; j < 8; ++j) sums[j] += a[i + j] * b[i + j];
  for (int64_t j = 0; i + j < n; ++j) sums[j] += a[i + j] * b[i + j];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// into[c][i] = row i of the matrix times column c of `right`, whose columns lie one after the other.
void times(float* into, const float* matrix, const PowerMatrix& shape, const float* right) {
  for (int64_t i = 0; i < shape.rows; ++i)
    for (int64_t c = 0; c < shape.rank; ++c)
      into[c * shape.rows + i] = dot(matrix + i * shape.columns, right + c * shape.columns, shape.columns);
}

// into[c][j] = column j of the matrix times column c of `left`.
void transposed_times(float* into, const float* matrix, const PowerMatrix& shape, const float* left) {
  std::fill_n(into, shape.rank * shape.columns, 0.0f);
  for (int64_t i = 0; i < shape.rows; ++i)
    for (int64_t c = 0; c < shape.rank; ++c) {
      const float factor = left[c * shape.rows + i];
      const float* row = matrix + i * shape.columns;
      float* sums = into + c * shape.columns;
      for (int64_t j = 0; j < shape.columns; ++j) sums[j] += factor * row[j];
    }
}

// matrix += sign * left right^T
void add_product(float* matrix, const PowerMatrix& shape, const float* left, const float* right, float sign) {
  for (int64_t i = 0; i < shape.rows; ++i)
    for (int64_t c = 0; c < shape.rank; ++c) {
      const float factor = sign * left[c * shape.rows + i];
      const float* column = right + c * shape.columns;
      float* row = matrix + i * shape.columns;
      for (int64_t j = 0; j < shape.columns; ++j) row[j] += factor * column[j];
    }
}

// Gram and Schmidt's, each column twice. One that the others leave almost nothing of is zero. NaN stays.
void make_orthonormal(float* columns, int64_t length, int64_t count) {
  const auto product = [&](const float* a, const float* b) {
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
  };
  for (int64_t c = 0; c < count; ++c) {
    float* const own = columns + c * length;
    const double before = std::sqrt(product(own, own));
    for (int turn = 0; turn < 2; ++turn)
      for (int64_t other = 0; other < c; ++other) {
        const auto share = static_cast<float>(product(columns + other * length, own));
        for (int64_t i = 0; i < length; ++i) own[i] -= share * columns[other * length + i];
      }
    const double norm = std::sqrt(product(own, own));
    const bool nothing = norm <= 1e-5 * before || norm < 1e-30;
    for (int64_t i = 0; i < length; ++i)
      own[i] = nothing ? 0.0f : static_cast<float>(static_cast<double>(own[i]) / norm);
  }
}

}  // namespace

std::vector<PowerMatrix> power_matrices(const FlatLayout& layout, int64_t rank) {
  std::vector<PowerMatrix> matrices;
  for (const FlatEntry& entry : layout.entries()) {
    const int64_t all = entry.shape.numel();
    PowerMatrix matrix{.offset = entry.offset, .rows = 1, .columns = all};
    const int64_t rows = entry.shape.rank() > 1 ? entry.shape[0] : 1;
    // Three narrow matrices travel, one of them once.
    if (rows > 1 && 2 * rank * (rows + all / rows) < all)
      matrix = {.offset = entry.offset, .rows = rows, .columns = all / rows, .rank = rank};
    matrices.push_back(matrix);
  }
  return matrices;
}

PowerSizes power_sizes(const std::vector<PowerMatrix>& matrices) {
  PowerSizes sizes;
  for (const PowerMatrix& matrix : matrices) {
    sizes.chosen += matrix.rank * matrix.columns;
    sizes.first += matrix.rank > 0 ? matrix.rank * matrix.rows : matrix.columns;
    sizes.second += matrix.rank * matrix.columns;
  }
  return sizes;
}

// A matrix that is sent whole at a greater rank takes more in one of them and less in another.
PowerSizes PowerRank::sizes(const FlatLayout& layout) const {
  PowerSizes all;
  for (int64_t rank = last_; rank <= most(); ++rank) {
    const PowerSizes one = power_sizes(power_matrices(layout, rank));
    all.chosen = std::max(all.chosen, one.chosen);
    all.first = std::max(all.first, one.first);
    all.second = std::max(all.second, one.second);
  }
  return all;
}

PowerSums::PowerSums(const FlatLayout& layout, PowerRank rank, LeafResiduals& residuals, int64_t leaves,
                     Group* group)
    : layout_(layout),
      rank_(rank),
      most_(rank.sizes(layout)),
      residuals_(residuals),
      leaves_(leaves),
      group_(group),
      stride_(std::max({most_.chosen, most_.first, most_.second})),
      q_(static_cast<size_t>(most_.chosen)),
      p_(static_cast<size_t>(most_.first)),
      of_leaf_(static_cast<size_t>(residuals.own().size() * most_.second)) {
  const int64_t count = stack_depth(residuals.own(), leaves) * stride_;
  if (group == nullptr) {
    own_.resize(static_cast<size_t>(count));
    memory_ = own_.data();
  } else {
    shared_ = group->allocate(count * kFloat);
    memory_ = shared_.as<float>();
  }
}

void PowerSums::begin(int64_t step, int64_t applied) {
  step_ = step;
  matrices_ = power_matrices(layout_, rank_.at(applied));
  sizes_ = power_sizes(matrices_);
}

int64_t PowerSums::bytes() const {
  return (stack_depth(residuals_.own(), leaves_) * stride_ +
          static_cast<int64_t>(q_.size() + p_.size() + of_leaf_.size())) *
         kFloat;
}

Group::Ticket PowerSums::start(Slice elements, float* root, const BucketTransfer&) {
  root_ = root - elements.begin;
  return nullptr;
}

void PowerSums::finish() {
  const int64_t leader = (step_ - 1) % leaves_;
  if (residuals_.has(leader)) choose(leader);
  if (group_ != nullptr && sizes_.chosen > 0) {
    int rank = 0;
    while (group_->split().range(rank).end <= leader) ++rank;
    const std::span<float> chosen(memory(0), static_cast<size_t>(sizes_.chosen));
    if (group_->rank() == rank) std::copy_n(q_.begin(), chosen.size(), chosen.begin());
    group_->broadcast(std::as_writable_bytes(chosen), rank, "gradients, powersgd");
    std::copy(chosen.begin(), chosen.end(), q_.begin());
  }
  sum(
      sizes_.first, [this](int64_t leaf, float* into) { first_product(leaf, into); },
      "gradients, powersgd P");
  std::copy_n(memory(0), sizes_.first, p_.begin());
  float* p = p_.data();
  for (const PowerMatrix& matrix : matrices_) {
    if (matrix.rank > 0) make_orthonormal(p, matrix.rows, matrix.rank);
    p += matrix.rank > 0 ? matrix.rank * matrix.rows : matrix.columns;
  }
  sum(
      sizes_.second, [this](int64_t leaf, float* into) { second_product(leaf, into); },
      "gradients, powersgd Q");
  decode();
  residuals_.pool().run(residuals_.own().size(),
                        [&](int64_t index) { keep_rest(residuals_.own().begin + index); });
}

void PowerSums::choose(int64_t leaf) {
  float* q = q_.data();
  for (size_t i = 0; i < matrices_.size(); ++i) {
    const PowerMatrix& matrix = matrices_[i];
    const float* m = residuals_.at(leaf, matrix.offset);
    const int64_t count = matrix.rank * matrix.columns;
    Philox(static_cast<uint64_t>(step_), i).fill_uniform({q, static_cast<size_t>(count)}, -0.5f, 0.5f);
    if (matrix.rank > 0) {
      std::vector<float> left(static_cast<size_t>(matrix.rank * matrix.rows));
      times(left.data(), m, matrix, q);
      make_orthonormal(left.data(), matrix.rows, matrix.rank);
      transposed_times(q, m, matrix, left.data());
      make_orthonormal(q, matrix.columns, matrix.rank);
    }
    q += count;
  }
}

template <typename Of>
void PowerSums::sum(int64_t count, const Of& of, const char* label) {
  LeafStack stack(leaves_);
  for (int64_t leaf = residuals_.own().begin; leaf < residuals_.own().end; ++leaf) {
    of(leaf, memory(stack.next_slot()));
    stack.push({leaf, leaf + 1}, [&](int64_t left, int64_t right) {
      comm::sum_loops().add2_f32(memory(left), memory(left), memory(right), count);
    });
  }
  if (group_ == nullptr || count == 0) return;
  std::vector<void*> partials;
  for (int64_t slot = 0; slot < stack.next_slot(); ++slot) partials.push_back(memory(slot));
  group_->all_reduce({.type = SumType::kF32, .count = count, .partials = partials, .label = label});
}

void PowerSums::first_product(int64_t leaf, float* into) {
  std::vector<int64_t> at, q_at;
  int64_t next = 0, q_next = 0;
  for (const PowerMatrix& matrix : matrices_) {
    at.push_back(next);
    q_at.push_back(q_next);
    next += matrix.rank > 0 ? matrix.rank * matrix.rows : matrix.columns;
    q_next += matrix.rank * matrix.columns;
  }
  residuals_.pool().run(static_cast<int64_t>(matrices_.size()), [&](int64_t index) {
    const auto i = static_cast<size_t>(index);
    const PowerMatrix& matrix = matrices_[i];
    const float* m = residuals_.at(leaf, matrix.offset);
    if (matrix.rank > 0)
      times(into + at[i], m, matrix, q_.data() + q_at[i]);
    else
      std::copy_n(m, matrix.columns, into + at[i]);
  });
}

void PowerSums::second_product(int64_t leaf, float* into) {
  float* const own = of_leaf_.data() + (leaf - residuals_.own().begin) * sizes_.second;
  const float* p = p_.data();
  float* next = own;
  for (const PowerMatrix& matrix : matrices_) {
    if (matrix.rank > 0) transposed_times(next, residuals_.at(leaf, matrix.offset), matrix, p);
    next += matrix.rank * matrix.columns;
    p += matrix.rank > 0 ? matrix.rank * matrix.rows : matrix.columns;
  }
  std::copy_n(own, sizes_.second, into);
}

void PowerSums::decode() {
  std::fill_n(root_, layout_.numel(), 0.0f);
  const float* p = p_.data();
  const float* q = memory(0);
  for (const PowerMatrix& matrix : matrices_) {
    if (matrix.rank > 0)
      add_product(root_ + matrix.offset, matrix, p, q, 1.0f);
    else
      std::copy_n(p, matrix.columns, root_ + matrix.offset);
    q += matrix.rank * matrix.columns;
    p += matrix.rank > 0 ? matrix.rank * matrix.rows : matrix.columns;
  }
}

void PowerSums::keep_rest(int64_t leaf) {
  const float* own = of_leaf_.data() + (leaf - residuals_.own().begin) * sizes_.second;
  const float* p = p_.data();
  for (const PowerMatrix& matrix : matrices_) {
    float* const m = residuals_.at(leaf, matrix.offset);
    if (matrix.rank > 0)
      add_product(m, matrix, p, own, -1.0f);
    else
      std::fill_n(m, matrix.columns, 0.0f);
    own += matrix.rank * matrix.columns;
    p += matrix.rank > 0 ? matrix.rank * matrix.rows : matrix.columns;
  }
}

}  // namespace lockstep
