// matmul of bf16 operands with fp32 sums: oneDNN's bf16 products on tiles that depend on the shape alone,
// each run on one thread. The result is bf16 (rounded once, from the fp32 sum) or f32.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "backend/cpu/isa.h"
#include "backend/cpu/matmul_shape.h"
#include "backend/cpu/onednn.h"

namespace lockstep::cpu {
namespace {

std::string refuse(const Graph& graph, const Node& node) {
  if (graph.type(node.inputs[0]).dtype != DType::kBF16) return "operands are not bf16";
  if (bf16_products().empty()) return "the processor has no bf16 dot product (avx512_bf16)";
  return "";
}

// The product of one tile of c. The operands are parts of larger matrices, so their strides are those of the
// whole.
struct TileProduct {
  dnnl::memory::desc a, b, c, scratchpad;
  dnnl::matmul primitive;

  TileProduct(const GemmShape& whole, int64_t m, int64_t n, DType out, bool accumulate) {
    using Desc = dnnl::memory::desc;
    const auto bf16 = dnnl::memory::data_type::bf16;
    a = Desc({m, whole.k}, bf16,
             whole.transpose_a ? dnnl::memory::dims{1, whole.m} : dnnl::memory::dims{whole.k, 1});
    b = Desc({whole.k, n}, bf16,
             whole.transpose_b ? dnnl::memory::dims{1, whole.k} : dnnl::memory::dims{whole.n, 1});
    c = Desc({m, n}, out == DType::kF32 ? dnnl::memory::data_type::f32 : bf16, {whole.n, 1});
    dnnl::primitive_attr attributes = onednn::caller_scratch();
    if (accumulate) {
      dnnl::post_ops add;
      add.append_sum(1.0f);
      attributes.set_post_ops(add);
    }
    onednn::make_single_threaded([&] {
      const dnnl::matmul::primitive_desc desc({a, b, c}, attributes, onednn::engine());
      scratchpad = desc.scratchpad_desc();
      primitive = dnnl::matmul(desc);
    });
  }
};

class MatmulBf16 : public Kernel {
 public:
  MatmulBf16(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        shape_(matmul_shape(graph, node)),
        out_(graph.type(node.outputs[0])),
        tiles_(gemm_tiles(shape_.gemm)) {
    if (out_.shape.numel() == 0 || shape_.gemm.k == 0) return;
    const GemmShape& gemm = shape_.gemm;
    for (const bool last_row : {false, true})
      for (const bool last_column : {false, true}) {
        const int64_t m = last_row ? tail(gemm.m, tiles_.rows) : tiles_.rows;
        const int64_t n = last_column ? tail(gemm.n, tiles_.columns) : tiles_.columns;
        auto& product = product_[last_row][last_column];
        product.emplace(gemm, m, n, out_.dtype, shape_.accumulate);
        scratch_bytes_ = std::max(scratch_bytes_, onednn::scratch_bytes(product->scratchpad));
      }
  }

  int64_t workspace_bytes() const override { return scratch_bytes_ * context_.pool.threads(); }

  // Most shapes need two of the four products, and layers share them.
  KernelMemory memory() const override { return {2 * onednn::kPrimitiveBytes, 0}; }

  void run(const KernelArgs& args) override {
    auto* c = static_cast<std::byte*>(args.outputs[0]);
    if (shape_.accumulate && args.inputs[2] != args.outputs[0])
      std::memcpy(c, args.inputs[2], static_cast<size_t>(out_.bytes()));
    if (!product_[0][0].has_value()) {
      if (!shape_.accumulate) std::memset(c, 0, static_cast<size_t>(out_.bytes()));
      return;
    }
    const GemmShape& gemm = shape_.gemm;
    const int64_t row_tiles = ceil_div(gemm.m, tiles_.rows);
    const int64_t column_tiles = ceil_div(gemm.n, tiles_.columns);
    context_.pool.run_indexed(shape_.batch * row_tiles * column_tiles, [&](int64_t task, int thread) {
      const int64_t item = task / (row_tiles * column_tiles);
      const int64_t row = task / column_tiles % row_tiles;
      const int64_t column = task % column_tiles;
      const TileProduct& product = *product_[row == row_tiles - 1][column == column_tiles - 1];
      const int64_t first_row = row * tiles_.rows;
      const int64_t first_column = column * tiles_.columns;
      const auto* a = static_cast<const uint16_t*>(args.inputs[0]) + item * shape_.stride_a() +
                      (gemm.transpose_a ? first_row : first_row * gemm.k);
      const auto* b = static_cast<const uint16_t*>(args.inputs[1]) + item * shape_.stride_b +
                      (gemm.transpose_b ? first_column * gemm.k : first_column);
      auto* tile = c + (item * shape_.stride_c() + first_row * gemm.n + first_column) * size_of(out_.dtype);
      onednn::run_single_threaded(
          product.primitive,
          {{DNNL_ARG_SRC, onednn::view(product.a, a)},
           {DNNL_ARG_WEIGHTS, onednn::view(product.b, b)},
           {DNNL_ARG_DST, onednn::view(product.c, tile)},
           {DNNL_ARG_SCRATCHPAD, onednn::view(product.scratchpad, scratch(args, thread))}});
    });
  }

 private:
  static int64_t tail(int64_t extent, int64_t tile) { return extent - (ceil_div(extent, tile) - 1) * tile; }
  void* scratch(const KernelArgs& args, int thread) const {
    return scratch_bytes_ == 0 ? nullptr : static_cast<std::byte*>(args.workspace) + thread * scratch_bytes_;
  }

  CpuContext context_;
  MatmulShape shape_;
  Type out_;
  GemmTiles tiles_;
  std::array<std::array<std::optional<TileProduct>, 2>, 2> product_;  // [in the last row][in the last column]
  int64_t scratch_bytes_ = 0;
};

}  // namespace

KernelDef matmul_bf16_kernel() { return {"matmul", "cpu.matmul_bf16", refuse, make_kernel<MatmulBf16>}; }

}  // namespace lockstep::cpu
