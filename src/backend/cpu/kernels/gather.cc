// embedding and gather: copies of rows, of any type; of a part of a table, zeros for the rows of other parts.
#include <cstring>

#include "backend/cpu/id_operand.h"
#include "backend/cpu/simd/simd.h"
#include "ops/row_ids.h"

namespace lockstep::cpu {
namespace {

class Gather : public Kernel {
 public:
  Gather(const Graph& graph, const Node& node, const CpuContext& context, RowView view, TablePart part = {})
      : context_(context),
        view_(view),
        row_bytes_(view.inner * size_of(graph.type(node.inputs[0]).dtype)),
        ids_(graph, node, 1, view.rows, IdOperand::kIgnoreNone, part) {}

  void run(const KernelArgs& args) override {
    const int64_t n = ids_.count();
    for_rows(context_, view_.outer * n, rows_per_task(row_bytes_ / 4), [&](int64_t begin, int64_t end) {
      while (begin < end) {  // a task may reach over several outer slices
        const int64_t outer = begin / n;
        const int64_t last = end < (outer + 1) * n ? end : (outer + 1) * n;
        copy_rows(args, outer, begin - outer * n, last - outer * n);
        begin = last;
      }
    });
  }

 private:
  void copy_rows(const KernelArgs& args, int64_t outer, int64_t begin, int64_t end) const {
    const char* table = static_cast<const char*>(args.inputs[0]) + outer * view_.rows * row_bytes_;
    char* out = static_cast<char*>(args.outputs[0]) + outer * ids_.count() * row_bytes_;
    const int64_t bad = ids_.wide()
                            ? copy_by(table, static_cast<const int64_t*>(args.inputs[1]), out, begin, end)
                            : copy_by(table, static_cast<const int32_t*>(args.inputs[1]), out, begin, end);
    if (bad >= 0) ids_.fail(args.inputs[1]);
  }

  // The first position whose id is outside the table, or -1. Rows of whole 4-byte words take the vector loop,
  // which only moves bits.
  template <typename Id>
  int64_t copy_by(const char* table, const Id* ids, char* out, int64_t begin, int64_t end) const {
    if (ids_.part().whole > 0) return copy_part(table, ids, out, begin, end);
    if (row_bytes_ % 4 == 0) {
      const auto* from = reinterpret_cast<const float*>(table);
      auto* to = reinterpret_cast<float*>(out);
      const EmbeddingLoops& loops = context_.simd.embedding;
      if constexpr (sizeof(Id) == 8)
        return loops.gather_i64(from, view_.rows, row_bytes_ / 4, ids, to, begin, end);
      else
        return loops.gather_i32(from, view_.rows, row_bytes_ / 4, ids, to, begin, end);
    }
    for (int64_t i = begin; i < end; ++i) {
      if (ids[i] < 0 || ids[i] >= view_.rows) return i;
      std::memcpy(out + i * row_bytes_, table + ids[i] * row_bytes_, static_cast<size_t>(row_bytes_));
    }
    return -1;
  }

  template <typename Id>
  int64_t copy_part(const char* table, const Id* ids, char* out, int64_t begin, int64_t end) const {
    const auto bytes = static_cast<size_t>(row_bytes_);
    for (int64_t i = begin; i < end; ++i) {
      if (ids[i] < 0 || ids[i] >= ids_.all_rows()) return i;
      const int64_t row = ids[i] - ids_.part().first;
      if (row >= 0 && row < view_.rows)
        std::memcpy(out + i * row_bytes_, table + row * row_bytes_, bytes);
      else
        std::memset(out + i * row_bytes_, 0, bytes);
    }
    return -1;
  }

  CpuContext context_;
  RowView view_;
  int64_t row_bytes_;
  IdOperand ids_;
};

std::unique_ptr<Kernel> make_embedding(const Graph& graph, const Node& node, const CpuContext& context) {
  return std::make_unique<Gather>(graph, node, context, rows_along(graph.type(node.inputs[0]).shape, 0),
                                  table_part(node.attributes));
}

std::unique_ptr<Kernel> make_gather(const Graph& graph, const Node& node, const CpuContext& context) {
  const Shape& x = graph.type(node.inputs[0]).shape;
  return std::make_unique<Gather>(graph, node, context, rows_along(x, row_axis(x, node.attributes)));
}

}  // namespace

KernelDef embedding_kernel() { return {"embedding", "cpu.embedding", refuse_nothing, make_embedding}; }
KernelDef gather_kernel() { return {"gather", "cpu.gather", refuse_nothing, make_gather}; }

}  // namespace lockstep::cpu
