// max, max_grad and argmax over one group of adjacent axes. The largest element does not depend on the order
// of looking, so only independent results are spread over threads.
#include <algorithm>
#include <cstring>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/storage.h"
#include "ops/axis_pieces.h"
#include "ops/reduce_axes.h"

namespace lockstep::cpu {
namespace {

// Columns are looked at in ranges that fit the buffers on the stack.
constexpr int64_t kRange = 1024;

// A NaN is larger than everything, and the first of equals wins.
bool exceeds(float x, float best) { return best == best && !(x <= best); }

// What the three kernels share: a floating operand as [outer, reduced, inner], read as floats.
class Scan : public Kernel {
 public:
  Scan(const Graph& graph, const Node& node, const CpuContext& context, const std::vector<int>& axes)
      : context_(context), dtype_(graph.type(node.inputs[0]).dtype) {
    split_ = split_reduction(graph.type(node.inputs[0]).shape, axes);
  }

 protected:
  // Calls body(first result, results, at, buffer) for every range of results that lie side by side; at(r)
  // gives element r of each of them as floats.
  template <typename Body>
  void for_columns(const void* data, const Body& body) const {
    const int64_t ranges = ceil_div(split_.inner, kRange);
    const int64_t elements = split_.reduced * std::min(split_.inner, kRange);
    for_rows(context_, split_.outer * ranges, rows_per_task(elements), [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t column = unit % ranges * kRange;
        const int64_t columns = std::min(kRange, split_.inner - column);
        float buffer[kRange];
        const auto at = [&](int64_t r) {
          const int64_t first = (unit / ranges * split_.reduced + r) * split_.inner + column;
          return read_floats(context_.simd, dtype_, data, first, columns, buffer);
        };
        body(unit / ranges * split_.inner + column, columns, at);
      }
    });
  }

  // Index along the reduced axis of the first largest element, for columns [0, columns).
  template <typename At>
  void first_largest(const At& at, int64_t columns, int32_t* index) const {
    float best[kRange];
    std::copy_n(at(0), columns, best);
    std::fill_n(index, columns, 0);
    for (int64_t r = 1; r < split_.reduced; ++r) {
      const float* x = at(r);
      for (int64_t i = 0; i < columns; ++i) {
        const bool larger = exceeds(x[i], best[i]);
        best[i] = larger ? x[i] : best[i];
        index[i] = larger ? static_cast<int32_t>(r) : index[i];
      }
    }
  }

  bool rows_in_place() const { return split_.inner == 1 && dtype_ == DType::kF32; }
  const float* row(const void* data, int64_t r) const {
    return static_cast<const float*>(data) + r * split_.reduced;
  }

  CpuContext context_;
  DType dtype_;
  ReductionSplit split_;
};

class Max : public Scan {
 public:
  Max(const Graph& graph, const Node& node, const CpuContext& context)
      : Scan(graph, node, context, reduced_axes(graph.type(node.inputs[0]).shape, node.attributes)) {}

  void run(const KernelArgs& args) override {
    if (rows_in_place()) {
      for_rows(context_, split_.outer, rows_per_task(split_.reduced), [&](int64_t begin, int64_t end) {
        context_.simd.reduce.row_max(static_cast<float*>(args.outputs[0]) + begin, row(args.inputs[0], begin),
                                     end - begin, split_.reduced);
      });
      return;
    }
    for_columns(args.inputs[0], [&](int64_t first, int64_t columns, const auto& at) {
      float best[kRange];
      std::copy_n(at(0), columns, best);
      for (int64_t r = 1; r < split_.reduced; ++r)
        context_.simd.pointwise.tile[static_cast<int>(Scalar::max)](best, best, at(r), nullptr, columns);
      write_floats(context_.simd, dtype_, args.outputs[0], first, columns, best);
    });
  }
};

class ArgMax : public Scan {
 public:
  ArgMax(const Graph& graph, const Node& node, const CpuContext& context)
      : Scan(graph, node, context, {piece_axis(graph.type(node.inputs[0]).shape, node.attributes)}) {}

  void run(const KernelArgs& args) override {
    auto* out = static_cast<int32_t*>(args.outputs[0]);
    if (rows_in_place()) {
      for_rows(context_, split_.outer, rows_per_task(split_.reduced), [&](int64_t begin, int64_t end) {
        context_.simd.reduce.row_argmax(out + begin, row(args.inputs[0], begin), end - begin, split_.reduced);
      });
      return;
    }
    if (split_.inner == 1) {
      for_rows(context_, split_.outer, rows_per_task(split_.reduced), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) out[r] = first_in_row(args.inputs[0], r * split_.reduced);
      });
      return;
    }
    for_columns(args.inputs[0], [&](int64_t first, int64_t columns, const auto& at) {
      first_largest(at, columns, out + first);
    });
  }

 private:
  // A row in 16 bits, converted range by range.
  int32_t first_in_row(const void* data, int64_t start) const {
    float buffer[kRange];
    float best = 0;
    int64_t index = -1;
    for (int64_t from = 0; from < split_.reduced; from += kRange) {
      const int64_t count = std::min(kRange, split_.reduced - from);
      const float* x = read_floats(context_.simd, dtype_, data, start + from, count, buffer);
      int32_t here = 0;
      context_.simd.reduce.row_argmax(&here, x, 1, count);
      if (index >= 0 && !exceeds(x[here], best)) continue;
      best = x[here];
      index = from + here;
    }
    return static_cast<int32_t>(index);
  }
};

class MaxGrad : public Scan {
 public:
  MaxGrad(const Graph& graph, const Node& node, const CpuContext& context)
      : Scan(graph, node, context, reduced_axes(graph.type(node.inputs[0]).shape, node.attributes)),
        width_(size_of(dtype_)) {}

  // Zero has the same bytes in every floating type, and dy is moved unchanged: no conversion on this side.
  void run(const KernelArgs& args) override {
    auto* out = static_cast<char*>(args.outputs[0]);
    const auto* dy = static_cast<const char*>(args.inputs[1]);
    for_columns(args.inputs[0], [&](int64_t first, int64_t columns, const auto& at) {
      int32_t index[kRange];
      first_largest(at, columns, index);
      const int64_t start = first / split_.inner * split_.reduced * split_.inner + first % split_.inner;
      for (int64_t r = 0; r < split_.reduced; ++r)
        std::memset(out + (start + r * split_.inner) * width_, 0, static_cast<size_t>(columns * width_));
      for (int64_t i = 0; i < columns; ++i)
        std::memcpy(out + (start + index[i] * split_.inner + i) * width_, dy + (first + i) * width_,
                    static_cast<size_t>(width_));
    });
  }

 private:
  int64_t width_;
};

}  // namespace

KernelDef max_kernel() { return {"max", "cpu.max", refuse_nothing, make_kernel<Max>}; }
KernelDef max_grad_kernel() { return {"max_grad", "cpu.max_grad", refuse_nothing, make_kernel<MaxGrad>}; }
KernelDef argmax_kernel() { return {"argmax", "cpu.argmax", refuse_nothing, make_kernel<ArgMax>}; }

}  // namespace lockstep::cpu
