// softmax, log_softmax and their gradients over any axis. Along the last one rows are used where they lie;
// along another they are gathered into a tile, worked on, and scattered back.
#include <algorithm>
#include <array>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/storage.h"

namespace lockstep::cpu {
namespace {

class Softmax : public Kernel {
 public:
  Softmax(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        log_(node.op->name.starts_with("log_")),
        operands_(node.inputs.size()),
        dtype_(graph.type(node.inputs[0]).dtype) {
    const Shape& shape = graph.type(node.inputs[0]).shape;
    const int64_t wanted = node.attributes.integer("axis");
    const int axis = static_cast<int>(wanted < 0 ? wanted + shape.rank() : wanted);
    cols_ = shape[axis];
    inner_ = shape.product(axis + 1, shape.rank());
    rows_ = shape.product(0, axis) * inner_;
    grain_ = rows_per_task(cols_);
  }

  // Per thread and operand the rows of a task, gathered as stored and as floats.
  int64_t workspace_bytes() const override {
    if (dtype_ == DType::kF32 && inner_ == 1) return 0;
    return context_.pool.threads() * static_cast<int64_t>(operands_) * 2 * tile_floats() *
           static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    context_.pool.run_indexed(ceil_div(rows_, grain_), [&](int64_t task, int thread) {
      float* scratch =
          static_cast<float*>(args.workspace) + thread * static_cast<int64_t>(operands_) * 2 * tile_floats();
      const int64_t begin = task * grain_;
      run_rows(args, begin, std::min(grain_, rows_ - begin), scratch);
    });
  }

 private:
  int64_t tile_floats() const { return grain_ * cols_; }

  void run_rows(const KernelArgs& args, int64_t begin, int64_t rows, float* scratch) const {
    const Simd& simd = context_.simd;
    const bool gathered = inner_ != 1;
    const int64_t first = gathered ? 0 : begin * cols_;
    const int64_t count = rows * cols_;
    std::array<const float*, 2> operands{};
    for (size_t i = 0; i < operands_; ++i) {
      float* raw = scratch + static_cast<int64_t>(2 * i) * tile_floats();
      const void* source = args.inputs[i];
      if (gathered) {
        gather(args.inputs[i], raw, begin, rows);
        source = raw;
      }
      operands[i] = read_floats(simd, dtype_, source, first, count, raw + tile_floats());
    }
    void* target = gathered ? static_cast<void*>(scratch) : args.outputs[0];
    float* out = floats_to_write(dtype_, target, first, scratch + tile_floats());
    compute(out, operands, rows);
    write_floats(simd, dtype_, target, first, count, out);
    if (gathered) scatter(scratch, args.outputs[0], begin, rows);
  }

  void compute(float* out, const std::array<const float*, 2>& operands, int64_t rows) const {
    const SoftmaxLoops& loops = context_.simd.softmax;
    if (operands_ == 1)
      (log_ ? loops.log_softmax : loops.softmax)(out, operands[0], rows, cols_);
    else
      (log_ ? loops.log_softmax_backward : loops.softmax_backward)(out, operands[0], operands[1], rows,
                                                                   cols_);
  }

  // Calls body(element in the tensor, element in the tile).
  template <typename Body>
  void for_elements(int64_t begin, int64_t rows, const Body& body) const {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t first = (begin + r) / inner_ * cols_ * inner_ + (begin + r) % inner_;
      for (int64_t i = 0; i < cols_; ++i) body(first + i * inner_, r * cols_ + i);
    }
  }
  void gather(const void* from, void* tile, int64_t begin, int64_t rows) const {
    for_elements(begin, rows, [&](int64_t there, int64_t here) {
      if (dtype_ == DType::kF32)
        static_cast<float*>(tile)[here] = static_cast<const float*>(from)[there];
      else
        static_cast<uint16_t*>(tile)[here] = static_cast<const uint16_t*>(from)[there];
    });
  }
  void scatter(const void* tile, void* to, int64_t begin, int64_t rows) const {
    for_elements(begin, rows, [&](int64_t there, int64_t here) {
      if (dtype_ == DType::kF32)
        static_cast<float*>(to)[there] = static_cast<const float*>(tile)[here];
      else
        static_cast<uint16_t*>(to)[there] = static_cast<const uint16_t*>(tile)[here];
    });
  }

  CpuContext context_;
  bool log_;
  size_t operands_;
  DType dtype_;
  int64_t rows_;
  int64_t cols_;
  int64_t inner_;
  int64_t grain_;
};

}  // namespace

KernelDef softmax_kernel() { return {"softmax", "cpu.softmax", refuse_nothing, make_kernel<Softmax>}; }
KernelDef log_softmax_kernel() {
  return {"log_softmax", "cpu.log_softmax", refuse_nothing, make_kernel<Softmax>};
}
KernelDef softmax_grad_kernel() {
  return {"softmax_grad", "cpu.softmax_grad", refuse_nothing, make_kernel<Softmax>};
}
KernelDef log_softmax_grad_kernel() {
  return {"log_softmax_grad", "cpu.log_softmax_grad", refuse_nothing, make_kernel<Softmax>};
}

}  // namespace lockstep::cpu
