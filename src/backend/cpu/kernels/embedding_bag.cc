// embedding_bag and its gradient.
#include "backend/cpu/id_operand.h"
#include "backend/cpu/ordered_row_sums.h"
#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

// Bags with padding are first copied without it, each into its own place of the workspace.
class EmbeddingBag : public Kernel {
 public:
  EmbeddingBag(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        bags_(graph.type(node.inputs[1]).shape[0]),
        length_(graph.type(node.inputs[1]).shape[1]),
        cols_(graph.type(node.inputs[0]).shape[1]),
        mean_(node.attributes.text("mode") == "mean"),
        ignore_(node.attributes.integer("ignore")),
        ids_(graph, node, 1, graph.type(node.inputs[0]).shape[0], ignore_) {}

  int64_t workspace_bytes() const override { return bags_ * length_ * (ids_.wide() ? 8 : 4); }

  void run(const KernelArgs& args) override {
    if (ids_.wide())
      run_bags<int64_t>(args, context_.simd.embedding.bag_i64);
    else
      run_bags<int32_t>(args, context_.simd.embedding.bag_i32);
  }

 private:
  template <typename Id, typename Loop>
  void run_bags(const KernelArgs& args, Loop loop) const {
    for_rows(context_, bags_, rows_per_task(cols_ * length_), [&](int64_t begin, int64_t end) {
      for (int64_t bag = begin; bag < end; ++bag) {
        const Id* ids = static_cast<const Id*>(args.inputs[1]) + bag * length_;
        Id* kept = static_cast<Id*>(args.workspace) + bag * length_;
        Id count = 0;
        for (int64_t i = 0; i < length_; ++i)
          if (ids[i] != ignore_) kept[count++] = ids[i];
        const Id offsets[2] = {0, count};
        const int64_t bad = loop(static_cast<const float*>(args.inputs[0]), ids_.table_rows(), cols_, kept,
                                 offsets, mean_, static_cast<float*>(args.outputs[0]) + bag * cols_, 0, 1);
        if (bad >= 0) ids_.fail(args.inputs[1]);
      }
    });
  }

  CpuContext context_;
  int64_t bags_;
  int64_t length_;
  int64_t cols_;
  bool mean_;
  int64_t ignore_;
  IdOperand ids_;
};

class EmbeddingBagGrad : public Kernel {
 public:
  EmbeddingBagGrad(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        table_(graph.type(node.outputs[0])),
        bags_(graph.type(node.inputs[1]).shape[0]),
        length_(graph.type(node.inputs[1]).shape[1]),
        mean_(node.attributes.text("mode") == "mean"),
        ignore_(node.attributes.integer("ignore")),
        ids_(graph, node, 1, table_.shape[0], ignore_),
        sums_(context, table_.dtype, bags_, table_.shape[1]) {
    for (int64_t i = 0; i < ids_.count(); ++i) bag_of_.push_back(static_cast<int32_t>(i / length_));
  }

  // Sorted ids, factors of bags, sums.
  int64_t workspace_bytes() const override { return sums_at() + sums_.workspace_bytes(); }

  void run(const KernelArgs& args) override {
    auto* workspace = static_cast<char*>(args.workspace);
    const SortedIds sorted = ids_.sort(args.inputs[1], workspace);
    const float* factors = mean_ ? fill_factors(args.inputs[1], workspace + ids_.sort_bytes()) : nullptr;
    zero_bytes(context_, args.outputs[0], table_.bytes());
    sums_.run(sorted, args.inputs[0], bag_of_.data(), factors, RowSum::kStore, args.outputs[0],
              workspace + sums_at());
  }

 private:
  int64_t sums_at() const {
    return ids_.sort_bytes() + ceil_div(bags_ * static_cast<int64_t>(sizeof(float)), 64) * 64;
  }

  const float* fill_factors(const void* ids, void* to) const {
    auto* factors = static_cast<float*>(to);
    for (int64_t bag = 0; bag < bags_; ++bag) {
      int64_t count = 0;
      for (int64_t i = bag * length_; i < (bag + 1) * length_; ++i)
        count += (ids_.wide() ? static_cast<const int64_t*>(ids)[i] : static_cast<const int32_t*>(ids)[i]) !=
                 ignore_;
      factors[bag] = count > 0 ? 1.0f / static_cast<float>(count) : 0.0f;
    }
    return factors;
  }

  CpuContext context_;
  Type table_;
  int64_t bags_;
  int64_t length_;
  bool mean_;
  int64_t ignore_;
  IdOperand ids_;
  OrderedRowSums sums_;
  std::vector<int32_t> bag_of_;
};

}  // namespace

KernelDef embedding_bag_kernel() {
  return {"embedding_bag", "cpu.embedding_bag", refuse_unless_f32, make_kernel<EmbeddingBag>};
}
KernelDef embedding_bag_grad_kernel() {
  return {"embedding_bag_grad", "cpu.embedding_bag_grad", refuse_nothing, make_kernel<EmbeddingBagGrad>};
}

}  // namespace lockstep::cpu
