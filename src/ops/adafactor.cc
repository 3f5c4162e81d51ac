// adafactor(p, g, rows, columns, whole, scale, lr, step): Adafactor without a first moment (arXiv
// 1804.04235), with the learning rate given (relative step off).
//
// The second moment of a matrix is kept as means over its rows and columns: `rows` and `columns` hold those
// of all matrices one after another, in the order of the attribute `matrices`. That of the tensors in
// `vectors` is kept whole, one after another in `whole`. Elements in neither list are padding and stay as
// they are.
#include <algorithm>
#include <cmath>

#include "ops/optimizer.h"

namespace lockstep {
namespace {

struct Totals {
  int64_t rows = 0, columns = 0, whole = 0;
};

Totals totals(const Attributes& attributes) {
  Totals sum;
  const auto& matrices = attributes.integers("matrices");
  for (size_t i = 0; i < matrices.size(); i += 3) {
    sum.rows += matrices[i + 1];
    sum.columns += matrices[i + 2];
  }
  const auto& vectors = attributes.integers("vectors");
  for (size_t i = 0; i < vectors.size(); i += 2) sum.whole += vectors[i + 1] - vectors[i];
  return sum;
}

void require_length(const InferContext& c, int operand, std::string_view name, int64_t length) {
  if (c.shape(operand) != Shape{length})
    c.fail("{} must be f32[{}], the sum over the listed tensors", name, length);
}

std::vector<Type> infer(const InferContext& c) {
  for (int operand = 0; operand < 5; ++operand) require_flat(c, operand);
  c.require_same_type(1, 0);
  require_step_scalars(c);
  require_ranges(c, "no_decay");
  require_ranges(c, "vectors");
  const auto& matrices = c.attributes().integers("matrices");
  const auto& vectors = c.attributes().integers("vectors");
  if (matrices.size() % 3 != 0)
    c.fail("matrices lists triples of offset, rows and columns; it has {} numbers", matrices.size());
  for (size_t i = 0; i < matrices.size(); i += 3) {
    const int64_t offset = matrices[i], rows = matrices[i + 1], columns = matrices[i + 2];
    if (offset < 0 || rows < 1 || columns < 1 || rows > (c.shape(0).numel() - offset) / columns)
      c.fail("the matrix of {} x {} at {} does not lie within the buffer", rows, columns, offset);
    require_one_decay(c, offset, offset + rows * columns);
  }
  for (size_t i = 0; i < vectors.size(); i += 2) require_one_decay(c, vectors[i], vectors[i + 1]);
  const Totals total = totals(c.attributes());
  require_length(c, 2, "rows", total.rows);
  require_length(c, 3, "columns", total.columns);
  require_length(c, 4, "whole", total.whole);
  return {c.type(0), c.type(2), c.type(3), c.type(4)};
}

class Reference {
 public:
  explicit Reference(const ReferenceContext& context)
      : c_(context), step_(context), beta2_(1.0 - std::pow(step_.t, -0.8)) {}

  void matrix(int64_t offset, int64_t rows, int64_t columns, int64_t row_state, int64_t column_state) {
    const auto mean_square = [&](int64_t first, int64_t stride, int64_t count) {
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += square(first + i * stride);
      return sum / static_cast<double>(count);
    };
    double row_mean = 0;
    for (int64_t r = 0; r < rows; ++r)
      row_mean += moment(2, row_state + r, mean_square(offset + r * columns, 1, columns));
    row_mean /= static_cast<double>(rows);
    for (int64_t k = 0; k < columns; ++k) moment(3, column_state + k, mean_square(offset + k, columns, rows));
    apply(offset, rows * columns, [&](int64_t i) {
      return c_.out(1)[row_state + i / columns] / row_mean * c_.out(2)[column_state + i % columns];
    });
  }

  void vector(int64_t begin, int64_t end, int64_t state) {
    for (int64_t i = begin; i < end; ++i) moment(4, state + i - begin, square(i));
    apply(begin, end - begin, [&](int64_t i) { return c_.out(3)[state + i]; });
  }

 private:
  double gradient(int64_t i) const { return c_.in(1)[i] * step_.scale; }
  double square(int64_t i) const { return gradient(i) * gradient(i) + c_.attributes.number("epsilon"); }
  double moment(int operand, int64_t at, double value) {
    return c_.out(operand - 1)[at] = beta2_ * c_.in(operand)[at] + (1.0 - beta2_) * value;
  }

  template <typename SecondMoment>
  void apply(int64_t begin, int64_t count, const SecondMoment& second_moment) {
    std::vector<double> update;
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) {
      update.push_back(gradient(begin + i) / std::sqrt(second_moment(i)));
      squares += update.back() * update.back();
    }
    const double rms = std::sqrt(squares / static_cast<double>(count));
    const double size = step_.lr / std::max(1.0, rms / c_.attributes.number("clip"));
    const bool decay = decays(c_.attributes.integers("no_decay"), begin);
    const double keep = decay ? 1.0 - step_.lr * c_.attributes.number("weight_decay") : 1.0;
    for (int64_t i = 0; i < count; ++i)
      c_.out(0)[begin + i] = c_.in(0)[begin + i] * keep - size * update[static_cast<size_t>(i)];
  }

  const ReferenceContext& c_;
  ReferenceStep step_;
  double beta2_;
};

void reference(const ReferenceContext& c) {
  c.out(0).data = c.in(0).data;
  Reference update(c);
  const auto& matrices = c.attributes.integers("matrices");
  const auto& vectors = c.attributes.integers("vectors");
  Totals before;
  for (size_t i = 0; i < matrices.size(); i += 3) {
    update.matrix(matrices[i], matrices[i + 1], matrices[i + 2], before.rows, before.columns);
    before.rows += matrices[i + 1];
    before.columns += matrices[i + 2];
  }
  for (size_t i = 0; i < vectors.size(); i += 2) {
    update.vector(vectors[i], vectors[i + 1], before.whole);
    before.whole += vectors[i + 1] - vectors[i];
  }
}

}  // namespace

OpDef adafactor_op() {
  OpDef def{.name = "adafactor", .summary = "factored second moments and clipped updates, over flat buffers"};
  def.attributes = {
      {"epsilon", 1e-30, "added to the squared gradient"},
      {"clip", 1.0, "largest root mean square of a tensor's update, before lr"},
      {"weight_decay", 0.0, "times lr, taken off the parameter"},
      {"matrices", std::vector<int64_t>{}, "triples (offset, rows, columns): tensors with factored moments"},
      {"vectors", std::vector<int64_t>{}, "pairs [begin, end): tensors whose second moment is kept whole"},
      no_decay_attribute()};
  def.min_inputs = def.max_inputs = 8;
  def.infer = infer;
  def.reference = reference;
  def.sharding = shard_whole_tensors;
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{12.0 * static_cast<double>(graph.type(node.inputs[0]).shape.numel()),
                touched_bytes(graph, node)};
  };
  def.inplace = optimizer_inplace(3);
  return def;
}

}  // namespace lockstep
