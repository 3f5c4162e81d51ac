// row_gradient: ids sorted, then one ordered sum per unique row.
#include <algorithm>
#include <cstring>

#include "backend/cpu/id_operand.h"
#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

class RowGradient : public Kernel {
 public:
  RowGradient(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        n_(graph.type(node.inputs[1]).shape.numel()),
        columns_(graph.type(node.inputs[0]).shape[-1]),
        ids_(graph, node, 1, node.attributes.integer("rows"), -1) {}

  int64_t workspace_bytes() const override { return ids_.sort_bytes(); }

  void run(const KernelArgs& args) override {
    const auto* dy = static_cast<const float*>(args.inputs[0]);
    auto* row_ids = static_cast<int32_t*>(args.outputs[0]);
    auto* row_grads = static_cast<float*>(args.outputs[1]);
    const SortedIds sorted = ids_.sort(args.inputs[1], args.workspace);
    const auto units = static_cast<int64_t>(sorted.rows.size());
    std::copy(sorted.rows.begin(), sorted.rows.end(), row_ids);
    std::fill(row_ids + units, row_ids + n_, -1);
    const RowTerms terms{dy, sorted.positions.data(), sorted.starts.data(), nullptr, nullptr};
    for_rows(context_, n_, rows_per_task(columns_), [&](int64_t begin, int64_t end) {
      const int64_t summed = std::clamp(units, begin, end);
      context_.simd.embedding.sum_rows(terms, nullptr, begin, summed, columns_, 0, columns_, RowSum::kStore,
                                       row_grads);
      std::memset(row_grads + summed * columns_, 0,
                  static_cast<size_t>((end - summed) * columns_) * sizeof(float));
    });
  }

 private:
  CpuContext context_;
  int64_t n_, columns_;
  IdOperand ids_;
};

}  // namespace

KernelDef row_gradient_kernel() {
  return {"row_gradient", "cpu.row_gradient", refuse_unless_f32, make_kernel<RowGradient>};
}

}  // namespace lockstep::cpu
