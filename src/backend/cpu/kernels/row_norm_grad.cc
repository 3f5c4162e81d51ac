// Gradients of layer_norm and rms_norm: one sweep over the rows gives dx and, per fixed block of rows,
// partial sums of the parameters' gradients, which are then added up in block order.
#include <algorithm>
#include <cstring>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/storage.h"

namespace lockstep::cpu {
namespace {

// A block is large enough for its partial sums to be a small part of what it reads, and there are not more
// blocks than threads could use.
constexpr int64_t kBlockElements = 8192;
constexpr int64_t kMostBlocks = 128;
constexpr int64_t kColumnsPerTask = 512;
// What is converted at a time from 16-bit storage: two such tiles of floats fit the first cache.
constexpr int64_t kTileElements = 4096;

class RowNormGrad : public Kernel {
 public:
  RowNormGrad(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), centered_(node.op->name == "layer_norm_grad") {
    const Type& x = graph.type(node.inputs[1]);
    dtype_ = x.dtype;
    parameter_dtype_ = graph.type(node.inputs[2]).dtype;
    cols_ = x.shape[-1];
    rows_ = x.shape.numel() / cols_;
    tile_rows_ = std::max<int64_t>(1, kTileElements / cols_);
    block_rows_ = std::max({ceil_div(kBlockElements, cols_), ceil_div(rows_, kMostBlocks), int64_t{1}});
    blocks_ = std::max<int64_t>(1, ceil_div(rows_, block_rows_));
    residual_ = centered_ ? 5 : 4;
    has_residual_ = node.inputs.size() > residual_;
  }

  // The weight as floats, the partial sums [blocks, 2, C], then per thread the rows of a tile: dy, x and dx.
  int64_t workspace_bytes() const override {
    const int64_t tiles = dtype_ == DType::kF32 ? 0 : context_.pool.threads() * tile_floats();
    return ((1 + 2 * blocks_) * cols_ + tiles) * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    auto* workspace = static_cast<float*>(args.workspace);
    gamma_ = read_floats(context_.simd, parameter_dtype_, args.inputs[2], 0, cols_, workspace);
    float* partial = workspace + cols_;
    float* tiles = partial + 2 * blocks_ * cols_;
    context_.pool.run_indexed(blocks_, [&](int64_t block, int thread) {
      float* dgamma = partial + 2 * block * cols_;
      std::memset(dgamma, 0, static_cast<size_t>(2 * cols_) * sizeof(float));
      const int64_t end = std::min(rows_, (block + 1) * block_rows_);
      const int64_t step = dtype_ == DType::kF32 ? block_rows_ : tile_rows_;
      for (int64_t begin = block * block_rows_; begin < end; begin += step)
        run_rows(args, begin, std::min(step, end - begin), dgamma, tiles + thread * tile_floats());
    });
    add_partials(partial);
    write_floats(context_.simd, parameter_dtype_, args.outputs[1], 0, cols_, partial);
    if (centered_) write_floats(context_.simd, parameter_dtype_, args.outputs[2], 0, cols_, partial + cols_);
  }

 private:
  int64_t tile_floats() const { return 3 * tile_rows_ * cols_; }

  void run_rows(const KernelArgs& args, int64_t begin, int64_t rows, float* dgamma, float* tile) const {
    const Simd& simd = context_.simd;
    const int64_t first = begin * cols_;
    const int64_t count = rows * cols_;
    float* x_tile = tile + tile_rows_ * cols_;
    NormBackward norm{};
    norm.dy = read_floats(simd, dtype_, args.inputs[0], first, count, tile);
    norm.x = read_floats(simd, dtype_, args.inputs[1], first, count, x_tile);
    norm.gamma = gamma_;
    if (centered_) norm.mean = static_cast<const float*>(args.inputs[3]) + begin;
    norm.rstd = static_cast<const float*>(args.inputs[centered_ ? 4 : 3]) + begin;
    if (has_residual_ && dtype_ == DType::kF32)
      norm.dsum = static_cast<const float*>(args.inputs[residual_]) + first;
    norm.dx = floats_to_write(dtype_, args.outputs[0], first, tile + 2 * tile_rows_ * cols_);
    norm.dgamma = dgamma;
    norm.dbeta = centered_ ? dgamma + cols_ : nullptr;
    norm.cols = cols_;
    (centered_ ? simd.norm.layer_norm_backward : simd.norm.rms_norm_backward)(norm, 0, rows);
    if (has_residual_ && dtype_ != DType::kF32) {
      // Rounded to 16 bits before the addition, as a separate addition would find it.
      write_floats(simd, dtype_, tile, 0, count, norm.dx);
      read_floats(simd, dtype_, tile, 0, count, norm.dx);
      const float* residual = read_floats(simd, dtype_, args.inputs[residual_], first, count, x_tile);
      simd.pointwise.tile[static_cast<size_t>(Scalar::add)](norm.dx, residual, norm.dx, nullptr, count);
    }
    write_floats(simd, dtype_, args.outputs[0], first, count, norm.dx);
  }

  // Leaves the sums in the first block's place.
  void add_partials(float* partial) const {
    for_rows(context_, 2 * cols_, kColumnsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t block = 1; block < blocks_; ++block)
        context_.simd.reduce.accumulate(partial + begin, partial + 2 * block * cols_ + begin, end - begin);
    });
  }

  CpuContext context_;
  bool centered_;
  bool has_residual_;
  DType dtype_;
  DType parameter_dtype_;
  size_t residual_;
  int64_t rows_;
  int64_t cols_;
  int64_t tile_rows_;
  int64_t block_rows_;
  int64_t blocks_;
  const float* gamma_ = nullptr;
};

}  // namespace

KernelDef layer_norm_grad_kernel() {
  return {"layer_norm_grad", "cpu.layer_norm_grad", refuse_nothing, make_kernel<RowNormGrad>};
}
KernelDef rms_norm_grad_kernel() {
  return {"rms_norm_grad", "cpu.rms_norm_grad", refuse_nothing, make_kernel<RowNormGrad>};
}

}  // namespace lockstep::cpu
