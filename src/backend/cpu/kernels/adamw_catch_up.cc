// adamw_catch_up: ids sorted, then each unique row replays the steps it missed, by itself.
#include "backend/cpu/id_operand.h"
#include "backend/cpu/optimizer_kernel.h"
#include "backend/cpu/replay_steps.h"

namespace lockstep::cpu {
namespace {

// Elements per task: few, since how many steps a row missed differs widely.
constexpr int64_t kTask = 1024;

class AdamwCatchUp : public OptimizerKernel {
 public:
  AdamwCatchUp(const Graph& graph, const Node& node, const CpuContext& context)
      : OptimizerKernel(graph, node, context),
        columns_(graph.type(node.inputs[0]).shape[1]),
        ids_(graph, node, 4, graph.type(node.inputs[0]).shape[0], -1),
        all_(node.attributes.flag("all") || ids_.count() == 0),
        capacity_(graph.type(node.inputs[5]).shape[0]),
        steps_(adam_options(node.attributes), capacity_) {}

  int64_t workspace_bytes() const override { return all_ ? 0 : ids_.sort_bytes(); }

  KernelMemory memory() const override { return {steps_.bytes(), 0}; }

  void run(const KernelArgs& args) override {
    const Table table{bring(args, 0, 0), bring(args, 1, 1), bring(args, 2, 2), bring<int32_t>(args, 3, 3)};
    const int64_t now = *static_cast<const int64_t*>(args.inputs[6]) - 1;
    LOCKSTEP_CHECK(now >= 0, "steps are counted from 1, this one is {}", now + 1);
    const int64_t first = std::max<int64_t>(1, now - capacity_ + 1);
    const AdamStep* steps = steps_.window(first, now, static_cast<const float*>(args.inputs[5]));
    const int32_t* rows = nullptr;  // null: all
    int64_t count = ids_.table_rows();
    if (!all_) {
      const SortedIds sorted = ids_.sort(args.inputs[4], args.workspace);
      rows = sorted.rows.data();
      count = static_cast<int64_t>(sorted.rows.size());
    }
    const int64_t rows_per_task = std::max<int64_t>(1, kTask / std::max<int64_t>(1, columns_));
    for_rows(context_, count, rows_per_task, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) catch_up(table, rows != nullptr ? rows[i] : i, first, now, steps);
    });
  }

 private:
  struct Table {
    float *p, *m, *v;
    int32_t* last;
  };

  void catch_up(const Table& table, int64_t row, int64_t first, int64_t now, const AdamStep* steps) const {
    const int64_t last = table.last[row];
    if (last + 1 < first)
      throw UserError(
          "adamw_catch_up: row {} took its last step at {} and must catch up to {}, but lr_history holds {} "
          "steps; catch all rows up at least every {} steps",
          row, last, now, capacity_, capacity_);
    LOCKSTEP_CHECK(last <= now, "row {} is at step {}, ahead of {}", row, last, now);
    const int64_t at = row * columns_;
    context_.simd.optimizer.adamw_replay(table.p + at, table.m + at, table.v + at, nullptr, columns_,
                                         steps + (last + 1 - first), now - last);
    table.last[row] = static_cast<int32_t>(now);
  }

  int64_t columns_;
  IdOperand ids_;
  bool all_;
  int64_t capacity_;
  ReplaySteps steps_;
};

}  // namespace

KernelDef adamw_catch_up_kernel() {
  return {"adamw_catch_up", "cpu.adamw_catch_up", refuse_unless_f32, make_kernel<AdamwCatchUp>};
}

}  // namespace lockstep::cpu
