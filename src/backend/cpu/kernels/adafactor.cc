// adafactor: tensor by tensor, in the phases that simd/adafactor_loops.h lays out.
#include "backend/cpu/optimizer_kernel.h"

namespace lockstep::cpu {
namespace {

constexpr int64_t kBlocksPerTask = kFlatTask / kNormBlock;
constexpr int64_t kColumnsPerTask = 1024;

class Adafactor : public OptimizerKernel {
 public:
  Adafactor(const Graph& graph, const Node& node, const CpuContext& context)
      : OptimizerKernel(graph, node, context),
        epsilon_(node.attributes.number("epsilon")),
        clip_(node.attributes.number("clip")),
        weight_decay_(node.attributes.number("weight_decay")),
        matrices_(node.attributes.integers("matrices")),
        vectors_(node.attributes.integers("vectors")) {}

  int64_t workspace_bytes() const override {
    int64_t doubles = 0;
    int64_t floats = 0;
    for (size_t i = 0; i < matrices_.size(); i += 3) {
      const int64_t rows = matrices_[i + 1], columns = matrices_[i + 2], units = adafactor_units(rows);
      doubles = std::max(doubles, units);
      floats = std::max(floats, rows + columns + units * columns);
    }
    for (size_t i = 0; i < vectors_.size(); i += 2)
      doubles = std::max(doubles, norm_blocks(vectors_[i + 1] - vectors_[i]));
    return doubles * static_cast<int64_t>(sizeof(double)) + floats * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    const Scalars now = scalars(args);
    const AdafactorStep step = adafactor_step(now.step, epsilon_, now.scale);
    float* p = bring(args, 0, 0);
    float* rows = bring(args, 2, 1);
    float* columns = bring(args, 3, 2);
    float* whole = bring(args, 4, 3);
    const float* g = gradient(args);
    for (size_t i = 0; i < matrices_.size(); i += 3) {
      const Matrix matrix{matrices_[i], matrices_[i + 1], matrices_[i + 2]};
      update_matrix(p + matrix.offset, g + matrix.offset, matrix, rows, columns, step, now, args.workspace);
      rows += matrix.rows;
      columns += matrix.columns;
    }
    for (size_t i = 0; i < vectors_.size(); i += 2) {
      const int64_t begin = vectors_[i], n = vectors_[i + 1] - begin;
      update_vector(p + begin, g + begin, begin, n, whole, step, now, args.workspace);
      whole += n;
    }
  }

 private:
  struct Matrix {
    int64_t offset, rows, columns;
  };

  // The size of a tensor's step, from the sums of squares of its update's parts.
  AdafactorApply apply_step(const double* squares, int64_t parts, int64_t count, int64_t offset,
                            const Scalars& now) const {
    double sum = 0;
    for (int64_t part = 0; part < parts; ++part) sum += squares[part];
    return adafactor_apply(now.lr, sum, count, clip_, 0.0, decays(offset) ? weight_decay_ : 0.0, now.scale);
  }

  void update_matrix(float* p, const float* g, const Matrix& matrix, float* row_moment, float* column_moment,
                     const AdafactorStep& step, const Scalars& now, void* workspace) const {
    const auto& loops = context_.simd.adafactor;
    const int64_t rows = matrix.rows, columns = matrix.columns, units = adafactor_units(rows);
    const int64_t units_per_task = rows_per_task(kAdafactorRows * columns);
    auto* squares = static_cast<double*>(workspace);
    auto* row_factor = reinterpret_cast<float*>(squares + units);
    float* column_factor = row_factor + rows;
    float* column_sums = column_factor + columns;
    for_rows(context_, units, units_per_task, [&](int64_t begin, int64_t end) {
      loops.row_stats(g, rows, columns, begin, end, step, row_moment, column_sums);
    });
    for_rows(context_, columns, kColumnsPerTask, [&](int64_t begin, int64_t end) {
      loops.column_stats(column_sums, rows, columns, begin, end, step, column_moment, column_factor);
    });
    loops.row_factors(row_moment, rows, row_factor);
    for_rows(context_, units, units_per_task, [&](int64_t begin, int64_t end) {
      loops.update_squares(g, row_factor, column_factor, rows, columns, begin, end, now.scale, squares);
    });
    const AdafactorApply apply = apply_step(squares, units, rows * columns, matrix.offset, now);
    for_rows(context_, rows, rows_per_task(columns), [&](int64_t begin, int64_t end) {
      loops.apply(p, nullptr, g, row_factor, column_factor, nullptr, columns, begin, end, apply);
    });
  }

  void update_vector(float* p, const float* g, int64_t offset, int64_t n, float* v, const AdafactorStep& step,
                     const Scalars& now, void* workspace) const {
    const auto& loops = context_.simd.adafactor;
    auto* squares = static_cast<double*>(workspace);
    const int64_t blocks = norm_blocks(n);
    for_rows(context_, blocks, kBlocksPerTask,
             [&](int64_t begin, int64_t end) { loops.vector_moment(v, g, n, begin, end, step, squares); });
    const AdafactorApply apply = apply_step(squares, blocks, n, offset, now);
    for_rows(context_, n, kFlatTask, [&](int64_t begin, int64_t end) {
      loops.vector_apply(p, nullptr, v, g, nullptr, begin, end, apply);
    });
  }

  double epsilon_, clip_, weight_decay_;
  std::vector<int64_t> matrices_;
  std::vector<int64_t> vectors_;
};

}  // namespace

KernelDef adafactor_kernel() {
  return {"adafactor", "cpu.adafactor", refuse_unless_f32, make_kernel<Adafactor>};
}

}  // namespace lockstep::cpu
