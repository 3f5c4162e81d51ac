// put_rows: copies of rows, of any type. In place, as a plan has it for a cache, nothing else moves.
#include <cstring>

#include "backend/cpu/kernel_def.h"
#include "ops/row_ids.h"

namespace lockstep::cpu {
namespace {

class PutRows : public Kernel {
 public:
  PutRows(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        slots_(graph.type(node.inputs[1])),
        slots_name_(graph.name(node.inputs[1])),
        base_bytes_(graph.type(node.inputs[0]).bytes()),
        view_(rows_along(graph.type(node.inputs[0]).shape, 1)),
        row_bytes_(view_.inner * size_of(graph.type(node.inputs[0]).dtype)) {}

  void run(const KernelArgs& args) override {
    auto* base = static_cast<std::byte*>(args.outputs[0]);
    if (args.inputs[0] != args.outputs[0])
      std::memcpy(base, args.inputs[0], static_cast<size_t>(base_bytes_));
    const auto* slots = static_cast<const int32_t*>(args.inputs[1]);
    const auto* rows = static_cast<const std::byte*>(args.inputs[2]);
    const int64_t count = slots_.shape.numel();
    for (int64_t t = 0; t < count; ++t)
      if (slots[t] >= view_.rows) fail_bad_id("put_rows", slots_name_, slots_.shape, t, slots[t], view_.rows);
    for_rows(context_, view_.outer * count, rows_per_task(row_bytes_ / 4), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (const int64_t slot = slots[i % count]; slot >= 0)
          std::memcpy(base + (i / count * view_.rows + slot) * row_bytes_, rows + i * row_bytes_,
                      static_cast<size_t>(row_bytes_));
    });
  }

 private:
  CpuContext context_;
  Type slots_;
  std::string slots_name_;
  int64_t base_bytes_;
  RowView view_;
  int64_t row_bytes_;
};

}  // namespace

KernelDef put_rows_kernel() { return {"put_rows", "cpu.put_rows", refuse_nothing, make_kernel<PutRows>}; }

}  // namespace lockstep::cpu
