// lower_triangle and its gradient: rows of a triangle are contiguous on both sides. Any element type.
#include <cstring>

#include "backend/cpu/kernel_def.h"

namespace lockstep::cpu {
namespace {

class LowerTriangle : public Kernel {
 public:
  LowerTriangle(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), gather_(node.op->name == "lower_triangle") {
    const Type& square = graph.type(gather_ ? node.inputs[0] : node.outputs[0]);
    element_ = size_of(square.dtype);
    size_ = square.shape[-1];
    matrices_ = size_ == 0 ? 0 : square.shape.numel() / (size_ * size_);
  }

  void run(const KernelArgs& args) override {
    auto* from = static_cast<const char*>(args.inputs[0]);
    auto* to = static_cast<char*>(args.outputs[0]);
    for_rows(context_, matrices_, rows_per_task(size_ * size_), [&](int64_t begin, int64_t end) {
      for (int64_t m = begin; m < end; ++m) copy(from, to, m);
    });
  }

 private:
  void copy(const char* from, char* to, int64_t matrix) const {
    const int64_t square = matrix * size_ * size_ * element_;
    int64_t triangle = matrix * size_ * (size_ - 1) / 2 * element_;
    if (!gather_) std::memset(to + square, 0, static_cast<size_t>(size_ * size_ * element_));
    for (int64_t row = 1; row < size_; ++row) {
      const int64_t bytes = row * element_;
      const int64_t place = square + row * size_ * element_;
      if (gather_)
        std::memcpy(to + triangle, from + place, static_cast<size_t>(bytes));
      else
        std::memcpy(to + place, from + triangle, static_cast<size_t>(bytes));
      triangle += bytes;
    }
  }

  CpuContext context_;
  bool gather_;
  int64_t element_;
  int64_t size_;
  int64_t matrices_;
};

}  // namespace

KernelDef lower_triangle_kernel() {
  return {"lower_triangle", "cpu.lower_triangle", refuse_nothing, make_kernel<LowerTriangle>};
}
KernelDef lower_triangle_grad_kernel() {
  return {"lower_triangle_grad", "cpu.lower_triangle_grad", refuse_nothing, make_kernel<LowerTriangle>};
}

}  // namespace lockstep::cpu
