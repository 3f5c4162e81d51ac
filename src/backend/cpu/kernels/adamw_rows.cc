// adamw_rows: one AdamW step per listed row, rows shared out over threads.
#include "backend/cpu/optimizer_kernel.h"

namespace lockstep::cpu {
namespace {

class AdamwRows : public OptimizerKernel {
 public:
  AdamwRows(const Graph& graph, const Node& node, const CpuContext& context)
      : OptimizerKernel(graph, node, context),
        table_rows_(graph.type(node.inputs[0]).shape[0]),
        columns_(graph.type(node.inputs[0]).shape[1]),
        ids_(graph.type(node.inputs[4]).shape[0]),
        options_(adam_options(node.attributes)) {}

  void run(const KernelArgs& args) override {
    const auto [scale, lr, t] = scalars(args);
    const AdamStep step = adam_step(with_lr(options_, lr), t, scale);
    const int64_t now = t;
    float* p = bring(args, 0, 0);
    float* m = bring(args, 1, 1);
    float* v = bring(args, 2, 2);
    auto* last = bring<int32_t>(args, 3, 3);
    const auto* rows = static_cast<const int32_t*>(args.inputs[4]);
    const auto* g = static_cast<const float*>(args.inputs[5]);
    for_rows(context_, listed(rows), rows_per_task(columns_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = rows[i], at = row * columns_;
        LOCKSTEP_CHECK(last[row] == now - 1, "row {} is at step {} and must be caught up to {} first", row,
                       last[row], now - 1);
        context_.simd.optimizer.adamw(p + at, m + at, v + at, g + i * columns_, nullptr, 0, columns_, step);
        last[row] = static_cast<int32_t>(now);
      }
    });
  }

 private:
  // How many rows stand before the padding. Rising ids mean that no two threads meet in one row.
  int64_t listed(const int32_t* rows) const {
    int64_t count = 0;
    while (count < ids_ && rows[count] >= 0) ++count;
    for (int64_t i = 0; i < count; ++i)
      LOCKSTEP_CHECK(rows[i] < table_rows_ && (i == 0 || rows[i] > rows[i - 1]),
                     "row_ids[{}] is {}: rows must rise and lie within {}", i, rows[i], table_rows_);
    for (int64_t i = count; i < ids_; ++i)
      LOCKSTEP_CHECK(rows[i] == -1, "row_ids[{}] is {} after the padding began", i, rows[i]);
    return count;
  }

  int64_t table_rows_, columns_, ids_;
  AdamOptions options_;
};

}  // namespace

KernelDef adamw_rows_kernel() {
  return {"adamw_rows", "cpu.adamw_rows", refuse_unless_f32, make_kernel<AdamwRows>};
}

}  // namespace lockstep::cpu
