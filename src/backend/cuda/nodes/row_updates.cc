// AdamW on single rows of a table: adamw_rows and adamw_catch_up.
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/optimizer.h"
#include "backend/cuda/nodes/id_operand.h"

namespace lockstep::cuda {
namespace {

AdamAttributes adam_attributes(const Attributes& attributes) {
  return {attributes.number("beta1"), attributes.number("beta2"), attributes.number("epsilon"),
          attributes.number("weight_decay")};
}

// p, m, v and last, updated in the results' place.
class RowUpdate : public NodeKernel {
 protected:
  RowUpdate(const Graph& graph, const Node& node, Device&)
      : table_(in_type(graph, node, 0)), attributes_(adam_attributes(node.attributes)) {}

  RowState state(const KernelArgs& args, cudaStream_t stream) const {
    for (size_t i = 0; i < 3; ++i) copy_on(stream, args.outputs[i], args.inputs[i], table_.bytes());
    copy_on(stream, args.outputs[3], args.inputs[3], table_.shape[0] * static_cast<int64_t>(sizeof(int32_t)));
    return {out(args, 0),          out(args, 1),    out(args, 2),
            out<int32_t>(args, 3), table_.shape[0], table_.shape[1]};
  }

  Type table_;
  AdamAttributes attributes_;
};

class AdamwRows : public RowUpdate {
 public:
  AdamwRows(const Graph& graph, const Node& node, Device& device)
      : RowUpdate(graph, node, device), count_(in_type(graph, node, 4).shape[0]) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    const size_t first = args.inputs.size() - 3;
    adamw_rows(stream, state(args, stream), in<int32_t>(args, 4), in(args, 5), count_,
               {in(args, first), in(args, first + 1), in<int64_t>(args, first + 2)}, attributes_);
  }

 private:
  int64_t count_;
};

class AdamwCatchUp : public RowUpdate {
 public:
  AdamwCatchUp(const Graph& graph, const Node& node, Device& device)
      : RowUpdate(graph, node, device),
        ids_(graph, node, 4, table_.shape[0], device, -1),
        all_(node.attributes.flag("all") || ids_.count() == 0),
        capacity_(in_type(graph, node, 5).shape[0]),
        late_(device.faults(), [capacity = capacity_](int64_t row) {
          return fmt::format(
              "adamw_catch_up: row {} missed more steps than the {} that lr_history holds; catch all rows up "
              "at least "
              "every {} steps",
              row, capacity, capacity);
        }) {}

  int64_t workspace_bytes() const override { return sort_bytes() + adamw_catch_up_workspace(capacity_); }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    const RowState rows = state(args, stream);
    SortedIds sorted{};
    if (!all_) sorted = sort_ids(stream, ids_.ids(args), args.workspace, ids_.bad());
    adamw_catch_up(stream, rows, all_ ? nullptr : &sorted, ids_.count(), in(args, 5), capacity_,
                   in<int64_t>(args, 6), attributes_, late_.as<BadId>(),
                   part_of(args.workspace, sort_bytes()));
  }

 private:
  int64_t sort_bytes() const { return all_ ? 0 : padded(sort_ids_workspace(ids_.unbound())); }

  IdOperand ids_;
  bool all_;
  int64_t capacity_;
  Faults::Place late_;
};

}  // namespace

void add_row_updates(KernelDefs& defs) {
  defs.push_back({"adamw_rows", "cuda.adamw_rows", refuse_unless_f32, make_kernel<AdamwRows>});
  defs.push_back({"adamw_catch_up", "cuda.adamw_catch_up", refuse_unless_f32, make_kernel<AdamwCatchUp>});
}

}  // namespace lockstep::cuda
