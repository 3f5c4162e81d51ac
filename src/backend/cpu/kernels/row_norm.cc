// layer_norm and rms_norm, alone or with the residual addition before them: a sweep over rows that stay in
// cache.
#include <algorithm>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/storage.h"

namespace lockstep::cpu {
namespace {

// What is converted at a time from 16-bit storage: two such tiles of floats fit the first cache.
constexpr int64_t kTileElements = 4096;

class RowNorm : public Kernel {
 public:
  RowNorm(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        centered_(node.op->name.ends_with("layer_norm")),
        adds_(node.op->name.starts_with("add_")),
        epsilon_(static_cast<float>(node.attributes.number("epsilon"))) {
    const Type& x = graph.type(node.inputs[0]);
    dtype_ = x.dtype;
    parameter_dtype_ = graph.type(node.inputs[adds_ ? 2 : 1]).dtype;
    cols_ = x.shape[-1];
    rows_ = x.shape.numel() / cols_;
    grain_ = rows_per_task(cols_);
    tile_rows_ = dtype_ == DType::kF32 ? grain_ : std::max<int64_t>(1, kTileElements / cols_);
  }

  // The parameters as floats, then per thread a tile of rows: x, r and y.
  int64_t workspace_bytes() const override {
    const int64_t tiles = dtype_ == DType::kF32 ? 0 : context_.pool.threads() * 3 * tile_rows_ * cols_;
    return (2 * cols_ + tiles) * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    auto* workspace = static_cast<float*>(args.workspace);
    const size_t weight = adds_ ? 2 : 1;
    gamma_ = read_floats(context_.simd, parameter_dtype_, args.inputs[weight], 0, cols_, workspace);
    beta_ = nullptr;
    if (centered_)
      beta_ =
          read_floats(context_.simd, parameter_dtype_, args.inputs[weight + 1], 0, cols_, workspace + cols_);
    context_.pool.run_indexed(ceil_div(rows_, grain_), [&](int64_t task, int thread) {
      const int64_t end = std::min(rows_, (task + 1) * grain_);
      for (int64_t begin = task * grain_; begin < end; begin += tile_rows_)
        run_rows(args, begin, std::min(tile_rows_, end - begin),
                 workspace + (2 + thread * 3 * tile_rows_) * cols_);
    });
  }

 private:
  void run_rows(const KernelArgs& args, int64_t begin, int64_t rows, float* tile) const {
    const Simd& simd = context_.simd;
    const int64_t first = begin * cols_;
    const int64_t count = rows * cols_;
    NormForward norm{};
    norm.x = read_floats(simd, dtype_, args.inputs[0], first, count, tile);
    norm.gamma = gamma_;
    norm.beta = beta_;
    norm.eps = epsilon_;
    norm.cols = cols_;
    if (adds_ && dtype_ == DType::kF32) {
      norm.residual = static_cast<const float*>(args.inputs[1]) + first;
      norm.sum = static_cast<float*>(args.outputs[0]) + first;
    } else if (adds_) {
      norm.x = stored_sum(args, first, count, tile);
    }
    const size_t out = adds_ ? 1 : 0;
    norm.y = floats_to_write(dtype_, args.outputs[out], first, tile + 2 * tile_rows_ * cols_);
    norm.rstd = static_cast<float*>(args.outputs[out + (centered_ ? 2 : 1)]) + begin;
    if (centered_) norm.mean = static_cast<float*>(args.outputs[out + 1]) + begin;
    (centered_ ? simd.norm.layer_norm : simd.norm.rms_norm)(norm, 0, rows);
    write_floats(simd, dtype_, args.outputs[out], first, count, norm.y);
  }

  // What is normalised is the sum as stored: rounded to 16 bits, as it would be by an addition of its own.
  const float* stored_sum(const KernelArgs& args, int64_t first, int64_t count, float* tile) const {
    const Simd& simd = context_.simd;
    const float* r = read_floats(simd, dtype_, args.inputs[1], first, count, tile + tile_rows_ * cols_);
    simd.pointwise.tile[static_cast<size_t>(Scalar::add)](tile, tile, r, nullptr, count);
    write_floats(simd, dtype_, args.outputs[0], first, count, tile);
    return read_floats(simd, dtype_, args.outputs[0], first, count, tile);
  }

  CpuContext context_;
  bool centered_;
  bool adds_;
  float epsilon_;
  DType dtype_;
  DType parameter_dtype_;
  int64_t rows_;
  int64_t cols_;
  int64_t grain_;
  int64_t tile_rows_;
  const float* gamma_ = nullptr;
  const float* beta_ = nullptr;
};

}  // namespace

KernelDef layer_norm_kernel() {
  return {"layer_norm", "cpu.layer_norm", refuse_nothing, make_kernel<RowNorm>};
}
KernelDef rms_norm_kernel() { return {"rms_norm", "cpu.rms_norm", refuse_nothing, make_kernel<RowNorm>}; }
KernelDef add_layer_norm_kernel() {
  return {"add_layer_norm", "cpu.add_layer_norm", refuse_nothing, make_kernel<RowNorm>};
}
KernelDef add_rms_norm_kernel() {
  return {"add_rms_norm", "cpu.add_rms_norm", refuse_nothing, make_kernel<RowNorm>};
}

}  // namespace lockstep::cpu
