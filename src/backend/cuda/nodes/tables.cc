// Rows of tables: embedding, gather, embedding_bag, scatter_add and their gradients.
#include "backend/cuda/kernels/tables.h"

#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/nodes/id_operand.h"
#include "ops/row_ids.h"

namespace lockstep::cuda {
namespace {

void zero_on(cudaStream_t stream, void* at, int64_t bytes) {
  if (bytes > 0) require(cudaMemsetAsync(at, 0, static_cast<size_t>(bytes), stream), "zeroing memory");
}

RowView view_of(const Graph& graph, const Node& node) {
  const Shape& x = in_type(graph, node, 0).shape;
  return rows_along(x, node.op->name == "embedding" ? 0 : row_axis(x, node.attributes));
}

class Gather : public NodeKernel {
 public:
  Gather(const Graph& graph, const Node& node, Device& device)
      : view_(view_of(graph, node)),
        bytes_(size_of(in_type(graph, node, 0).dtype)),
        ids_(graph, node, 1, view_.rows, device) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    gather_rows(stream, ids_.ids(args), bytes_, view_.outer, view_.inner, args.inputs[0], args.outputs[0],
                ids_.bad());
  }

 private:
  RowView view_;
  int64_t bytes_;
  IdOperand ids_;
};

// What the gradients share: ids sorted in the workspace, then sums of rows.
class RowGradientSums : public NodeKernel {
 public:
  int64_t workspace_bytes() const override {
    return padded(sort_ids_workspace(ids_.unbound())) + row_sums_workspace(ids_.unbound(), sums_);
  }

 protected:
  RowGradientSums(const Graph& graph, const Node& node, Device& device, size_t operand, int64_t rows,
                  RowSums sums, int64_t ignore = IdOperand::kIgnoreNone)
      : ids_(graph, node, operand, rows, device, ignore), sums_(sums) {}

  SortedIds sorted(const KernelArgs& args, cudaStream_t stream) const {
    return sort_ids(stream, ids_.ids(args), args.workspace, ids_.bad());
  }
  void add_rows(const KernelArgs& args, cudaStream_t stream, const SortedIds& sorted, const RowSums& sums,
                const void* terms, void* table) const {
    const int64_t behind = padded(sort_ids_workspace(ids_.unbound()));
    row_sums(stream, ids_.ids(args), sorted, sums, terms, table, part_of(args.workspace, behind));
  }

  IdOperand ids_;
  RowSums sums_;
};

RowSums sums_of(DType dtype, int64_t columns, RowMode mode) {
  return {.dtype = dtype, .columns = columns, .mode = mode};
}

class EmbeddingGrad : public RowGradientSums {
 public:
  EmbeddingGrad(const Graph& graph, const Node& node, Device& device)
      : RowGradientSums(graph, node, device, 1, out_type(graph, node, 0).shape[0],
                        sums_of(out_type(graph, node, 0).dtype, out_type(graph, node, 0).shape[1],
                                node.inputs.size() == 3 ? RowMode::kAdd : RowMode::kStore)),
        bytes_(out_type(graph, node, 0).bytes()) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    if (sums_.mode == RowMode::kAdd)
      copy_on(stream, args.outputs[0], args.inputs[2], bytes_);
    else
      zero_on(stream, args.outputs[0], bytes_);
    add_rows(args, stream, sorted(args, stream), sums_, args.inputs[0], args.outputs[0]);
  }

 private:
  int64_t bytes_;
};

class ScatterAdd : public RowGradientSums {
 public:
  ScatterAdd(const Graph& graph, const Node& node, Device& device)
      : RowGradientSums(graph, node, device, 1, view_of(graph, node).rows,
                        sums_of(in_type(graph, node, 0).dtype, view_of(graph, node).inner, RowMode::kAdd)),
        view_(view_of(graph, node)),
        bytes_(in_type(graph, node, 0).bytes()) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    copy_on(stream, args.outputs[0], args.inputs[0], bytes_);
    const SortedIds order = sorted(args, stream);
    const int64_t row = view_.inner * size_of(sums_.dtype);
    for (int64_t outer = 0; outer < view_.outer; ++outer)
      add_rows(args, stream, order, sums_, part_of(args.inputs[2], outer * ids_.count() * row),
               part_of(args.outputs[0], outer * view_.rows * row));
  }

 private:
  RowView view_;
  int64_t bytes_;
};

class EmbeddingBag : public NodeKernel {
 public:
  EmbeddingBag(const Graph& graph, const Node& node, Device& device)
      : table_(in_type(graph, node, 0)),
        length_(in_type(graph, node, 1).shape[1]),
        mean_(node.attributes.text("mode") == "mean"),
        bytes_(out_type(graph, node, 0).bytes()),
        ids_(graph, node, 1, table_.shape[0], device, node.attributes.integer("ignore")) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    if (length_ == 0) return zero_on(stream, args.outputs[0], bytes_);
    embedding_bag(stream, ids_.ids(args), length_, mean_, table_.dtype, table_.shape[1], args.inputs[0],
                  args.outputs[0], ids_.bad());
  }

 private:
  Type table_;
  int64_t length_;
  bool mean_;
  int64_t bytes_;
  IdOperand ids_;
};

class EmbeddingBagGrad : public RowGradientSums {
 public:
  EmbeddingBagGrad(const Graph& graph, const Node& node, Device& device)
      : RowGradientSums(
            graph, node, device, 1, out_type(graph, node, 0).shape[0],
            sums_of(out_type(graph, node, 0).dtype, out_type(graph, node, 0).shape[1], RowMode::kStore),
            node.attributes.integer("ignore")),
        bytes_(out_type(graph, node, 0).bytes()),
        bags_(in_type(graph, node, 1).shape[0]),
        length_(in_type(graph, node, 1).shape[1]),
        mean_(node.attributes.text("mode") == "mean") {
    sums_.terms_per_row = length_;
  }
  // Behind the rest: one weight per bag.
  int64_t workspace_bytes() const override {
    return padded(RowGradientSums::workspace_bytes()) + bags_ * static_cast<int64_t>(sizeof(float));
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    zero_on(stream, args.outputs[0], bytes_);
    if (length_ == 0) return;
    RowSums sums = sums_;
    if (mean_) {
      auto* const weights =
          static_cast<float*>(part_of(args.workspace, padded(RowGradientSums::workspace_bytes())));
      bag_weights(stream, ids_.ids(args), length_, weights);
      sums.weights = weights;
    }
    add_rows(args, stream, sorted(args, stream), sums, args.inputs[0], args.outputs[0]);
  }

 private:
  int64_t bytes_, bags_, length_;
  bool mean_;
};

// row_gradient(dy, ids) {rows} -> row_ids, row_grads.
class RowGradient : public RowGradientSums {
 public:
  RowGradient(const Graph& graph, const Node& node, Device& device)
      : RowGradientSums(graph, node, device, 1, node.attributes.integer("rows"),
                        sums_of(DType::kF32, in_type(graph, node, 0).shape[-1], RowMode::kStore), -1),
        bytes_(out_type(graph, node, 1).bytes()) {
    sums_.by_unit = true;
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    zero_on(stream, args.outputs[1], bytes_);
    const SortedIds order = sorted(args, stream);
    unit_ids(stream, ids_.ids(args), order, out<int32_t>(args, 0));
    add_rows(args, stream, order, sums_, args.inputs[0], args.outputs[1]);
  }

 private:
  int64_t bytes_;
};

std::string refuse_parts(const Graph&, const Node& node, Device&) {
  return node.attributes.integer("whole") == 0 ? "" : "the table is a part of one";
}

}  // namespace

void add_tables(KernelDefs& defs) {
  defs.push_back({"embedding", "cuda.embedding", refuse_parts, make_kernel<Gather>});
  defs.push_back({"gather", "cuda.gather", refuse_nothing, make_kernel<Gather>});
  defs.push_back({"embedding_grad", "cuda.embedding_grad", refuse_parts, make_kernel<EmbeddingGrad>});
  defs.push_back({"scatter_add", "cuda.scatter_add", refuse_nothing, make_kernel<ScatterAdd>});
  defs.push_back({"embedding_bag", "cuda.embedding_bag", refuse_nothing, make_kernel<EmbeddingBag>});
  defs.push_back(
      {"embedding_bag_grad", "cuda.embedding_bag_grad", refuse_nothing, make_kernel<EmbeddingBagGrad>});
  defs.push_back({"row_gradient", "cuda.row_gradient", refuse_unless_f32, make_kernel<RowGradient>});
}

}  // namespace lockstep::cuda
