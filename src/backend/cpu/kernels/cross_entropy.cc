// cross_entropy and its gradient, a few rows at a time; probabilities exist only in registers.
//
// Labels are checked before any row is read, so that the first bad one is reported whatever thread would meet
// it. The rows' losses are added in index order in double. Where there are weights, a row counts as often as
// its weight says. Of logits that leaves have columns of there is cross_entropy_part.
#include <algorithm>
#include <limits>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/storage.h"
#include "base/error.h"

namespace lockstep::cpu {
namespace {

CrossEntropyRows rows_of(const Type& logits, const Attributes& attributes) {
  return {logits.shape[1], static_cast<int32_t>(attributes.integer("ignore")),
          static_cast<float>(attributes.number("smoothing"))};
}

// Of columns of longer rows.
CrossEntropyRows columns_of(const Type& logits, const Attributes& attributes) {
  CrossEntropyRows rows = rows_of(logits, attributes);
  rows.first = attributes.integer("first");
  rows.all = attributes.integer("classes");
  return rows;
}

// Throws UserError for the first label that is no class.
int64_t count_labels(const std::string& described, const int32_t* labels, int64_t rows, int32_t ignore,
                     int64_t classes) {
  int64_t counted = 0;
  for (int64_t r = 0; r < rows; ++r) {
    if (labels[r] == ignore) continue;
    if (labels[r] < 0 || labels[r] >= classes)
      throw UserError("{}: row {} has label {}; labels lie in [0, {}), or are {} to ignore the row",
                      described, r, labels[r], classes, ignore);
    ++counted;
  }
  return counted;
}

std::string refuse(const Graph&, const Node& node) {
  const int64_t ignore = node.attributes.integer("ignore");
  const bool fits =
      ignore >= std::numeric_limits<int32_t>::min() && ignore <= std::numeric_limits<int32_t>::max();
  return fits ? "" : fmt::format("ignore {} does not fit the labels' i32", ignore);
}

class CrossEntropy : public Kernel {
 public:
  CrossEntropy(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        logits_(graph.type(node.inputs[0])),
        shape_(rows_of(logits_, node.attributes)),
        grain_(rows_per_task(shape_.classes)),
        described_(describe(graph, *node.op, node.inputs)) {}

  // One loss per row, then per thread the rows of a task as floats.
  int64_t workspace_bytes() const override {
    const int64_t tiles =
        logits_.dtype == DType::kF32 ? 0 : context_.pool.threads() * grain_ * shape_.classes;
    return (logits_.shape[0] + tiles) * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    const int64_t rows = logits_.shape[0];
    const auto* labels = static_cast<const int32_t*>(args.inputs[1]);
    *static_cast<int64_t*>(args.outputs[1]) =
        count_labels(described_, labels, rows, shape_.ignore, shape_.classes);
    auto* losses = static_cast<float*>(args.workspace);
    auto* lse = static_cast<float*>(args.outputs[2]);
    const int64_t classes = shape_.classes;
    context_.pool.run_indexed(ceil_div(rows, grain_), [&](int64_t task, int thread) {
      const int64_t begin = task * grain_;
      const int64_t count = std::min(grain_, rows - begin);
      const float* logits = read_floats(context_.simd, logits_.dtype, args.inputs[0], begin * classes,
                                        count * classes, losses + rows + thread * grain_ * classes);
      context_.simd.softmax.cross_entropy(losses + begin, lse + begin, logits, labels + begin, shape_, count);
    });
    if (args.inputs.size() == 3) {
      const auto* weights = static_cast<const float*>(args.inputs[2]);
      for (int64_t r = 0; r < rows; ++r) losses[r] *= weights[r];
    }
    double total = 0;
    for (int64_t r = 0; r < rows; ++r) total += static_cast<double>(losses[r]);
    *static_cast<float*>(args.outputs[0]) = static_cast<float>(total);
  }

 private:
  CpuContext context_;
  Type logits_;
  CrossEntropyRows shape_;
  int64_t grain_;
  std::string described_;
};

class CrossEntropyPart : public Kernel {
 public:
  CrossEntropyPart(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        logits_(graph.type(node.inputs[0])),
        shape_(columns_of(logits_, node.attributes)),
        grain_(rows_per_task(shape_.classes)),
        described_(describe(graph, *node.op, node.inputs)) {}

  // Per thread the rows of a task as floats.
  int64_t workspace_bytes() const override {
    if (logits_.dtype == DType::kF32) return 0;
    return context_.pool.threads() * grain_ * shape_.classes * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    const int64_t rows = logits_.shape[0], classes = shape_.classes;
    const auto* labels = static_cast<const int32_t*>(args.inputs[1]);
    count_labels(described_, labels, rows, shape_.ignore, shape_.all);
    auto* parts = static_cast<float*>(args.outputs[0]);
    context_.pool.run_indexed(ceil_div(rows, grain_), [&](int64_t task, int thread) {
      const int64_t begin = task * grain_, count = std::min(grain_, rows - begin);
      const float* logits =
          read_floats(context_.simd, logits_.dtype, args.inputs[0], begin * classes, count * classes,
                      static_cast<float*>(args.workspace) + thread * grain_ * classes);
      float* const at = parts + begin;
      const CrossEntropyParts to{at, at + rows, at + 2 * rows,
                                 shape_.smoothing == 0 ? nullptr : at + 3 * rows};
      context_.simd.softmax.cross_entropy_part(to, logits, labels + begin, shape_, count);
    });
  }

 private:
  CpuContext context_;
  Type logits_;
  CrossEntropyRows shape_;
  int64_t grain_;
  std::string described_;
};

class CrossEntropyGrad : public Kernel {
 public:
  CrossEntropyGrad(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        logits_(graph.type(node.inputs[1])),
        shape_(columns_of(logits_, node.attributes)),
        grain_(rows_per_task(shape_.classes)) {}

  int64_t workspace_bytes() const override {
    if (logits_.dtype == DType::kF32) return 0;
    return context_.pool.threads() * grain_ * shape_.classes * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    const int64_t rows = logits_.shape[0];
    const int64_t classes = shape_.classes;
    const float scale = *static_cast<const float*>(args.inputs[0]);
    const auto* labels = static_cast<const int32_t*>(args.inputs[2]);
    const auto* lse = static_cast<const float*>(args.inputs[3]);
    const auto* weights = args.inputs.size() == 5 ? static_cast<const float*>(args.inputs[4]) : nullptr;
    context_.pool.run_indexed(ceil_div(rows, grain_), [&](int64_t task, int thread) {
      const Simd& simd = context_.simd;
      const int64_t begin = task * grain_;
      const int64_t count = std::min(grain_, rows - begin);
      float* tile = static_cast<float*>(args.workspace) + thread * grain_ * classes;
      const float* logits =
          read_floats(simd, logits_.dtype, args.inputs[1], begin * classes, count * classes, tile);
      float* dlogits = floats_to_write(logits_.dtype, args.outputs[0], begin * classes, tile);
      if (weights == nullptr)
        simd.softmax.cross_entropy_backward(dlogits, logits, lse + begin, labels + begin, shape_, scale,
                                            count);
      for (int64_t r = 0; weights != nullptr && r < count; ++r)
        simd.softmax.cross_entropy_backward(dlogits + r * classes, logits + r * classes, lse + begin + r,
                                            labels + begin + r, shape_, scale * weights[begin + r], 1);
      write_floats(simd, logits_.dtype, args.outputs[0], begin * classes, count * classes, dlogits);
    });
  }

 private:
  CpuContext context_;
  Type logits_;
  CrossEntropyRows shape_;
  int64_t grain_;
};

}  // namespace

KernelDef cross_entropy_kernel() {
  return {"cross_entropy", "cpu.cross_entropy", refuse, make_kernel<CrossEntropy>};
}
KernelDef cross_entropy_part_kernel() {
  return {"cross_entropy_part", "cpu.cross_entropy_part", refuse, make_kernel<CrossEntropyPart>};
}
KernelDef cross_entropy_grad_kernel() {
  return {"cross_entropy_grad", "cpu.cross_entropy_grad", refuse, make_kernel<CrossEntropyGrad>};
}

}  // namespace lockstep::cpu
