// embedding_grad and scatter_add: ids are sorted once, then every touched row adds its own positions in
// order. Of a part of a table, ids of other parts are left out.
#include "backend/cpu/id_operand.h"
#include "backend/cpu/ordered_row_sums.h"
#include "ops/row_ids.h"

namespace lockstep::cpu {
namespace {

// A table with nothing in it but the sums; or, accumulating, one whose untouched rows cost nothing.
class EmbeddingGrad : public Kernel {
 public:
  EmbeddingGrad(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        table_(graph.type(node.outputs[0])),
        ids_(graph, node, 1, table_.shape[0], IdOperand::kIgnoreNone, table_part(node.attributes)),
        sums_(context, table_.dtype, ids_.count(), table_.shape[1]),
        accumulate_(node.inputs.size() == 3) {}

  int64_t workspace_bytes() const override { return ids_.sort_bytes() + sums_.workspace_bytes(); }

  void run(const KernelArgs& args) override {
    const SortedIds sorted = ids_.sort(args.inputs[1], args.workspace);
    if (accumulate_)
      copy_bytes(context_, args.outputs[0], args.inputs[2], table_.bytes());
    else
      zero_bytes(context_, args.outputs[0], table_.bytes());
    sums_.run(sorted, args.inputs[0], nullptr, nullptr, accumulate_ ? RowSum::kAdd : RowSum::kStore,
              args.outputs[0], static_cast<char*>(args.workspace) + ids_.sort_bytes());
  }

 private:
  CpuContext context_;
  Type table_;
  IdOperand ids_;
  OrderedRowSums sums_;
  bool accumulate_;
};

class ScatterAdd : public Kernel {
 public:
  ScatterAdd(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        base_(graph.type(node.inputs[0])),
        view_(rows_along(base_.shape, row_axis(base_.shape, node.attributes))),
        ids_(graph, node, 1, view_.rows),
        sums_(context, base_.dtype, ids_.count(), view_.inner) {}

  int64_t workspace_bytes() const override { return ids_.sort_bytes() + sums_.workspace_bytes(); }

  void run(const KernelArgs& args) override {
    const SortedIds sorted = ids_.sort(args.inputs[1], args.workspace);
    copy_bytes(context_, args.outputs[0], args.inputs[0], base_.bytes());
    const int64_t row_bytes = view_.inner * size_of(base_.dtype);
    for (int64_t outer = 0; outer < view_.outer; ++outer)
      sums_.run(sorted, static_cast<const char*>(args.inputs[2]) + outer * ids_.count() * row_bytes, nullptr,
                nullptr, RowSum::kContinue,
                static_cast<char*>(args.outputs[0]) + outer * view_.rows * row_bytes,
                static_cast<char*>(args.workspace) + ids_.sort_bytes());
  }

 private:
  CpuContext context_;
  Type base_;
  RowView view_;
  IdOperand ids_;
  OrderedRowSums sums_;
};

}  // namespace

KernelDef embedding_grad_kernel() {
  return {"embedding_grad", "cpu.embedding_grad", refuse_nothing, make_kernel<EmbeddingGrad>};
}
KernelDef scatter_add_kernel() {
  return {"scatter_add", "cpu.scatter_add", refuse_nothing, make_kernel<ScatterAdd>};
}

}  // namespace lockstep::cpu
