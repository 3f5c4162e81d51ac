// global_norm: squares summed by fixed blocks of 1024 elements, block sums added in index order in double;
// and its two halves, for workers that hold parts of what the norm is of.
#include <cmath>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/simd/simd.h"
#include "ops/norm_parts.h"

namespace lockstep::cpu {
namespace {

static_assert(kNormBlock == kNormPartElements);
constexpr int64_t kBlocksPerTask = 64;

// The sums of the blocks of all operands, one operand after another.
class BlockSquares {
 public:
  BlockSquares(const Graph& graph, const Node& node, const CpuContext& context) : context_(context) {
    for (const Value input : node.inputs) {
      lengths_.push_back(graph.type(input).shape.numel());
      bf16_.push_back(graph.type(input).dtype == DType::kBF16);
      blocks_ += norm_blocks(lengths_.back());
    }
  }

  int64_t blocks() const { return blocks_; }

  void run(const KernelArgs& args, double* partials) const {
    for (size_t i = 0; i < lengths_.size(); ++i) {
      const void* x = args.inputs[i];
      for_rows(context_, norm_blocks(lengths_[i]), kBlocksPerTask, [&](int64_t begin, int64_t end) {
        const Norm2Loops& loops = context_.simd.norm2;
        if (bf16_[i])
          loops.block_squares_bf16(static_cast<const uint16_t*>(x), lengths_[i], begin, end, partials);
        else
          loops.block_squares(static_cast<const float*>(x), lengths_[i], begin, end, partials);
      });
      partials += norm_blocks(lengths_[i]);
    }
  }

 private:
  CpuContext context_;
  std::vector<int64_t> lengths_;
  std::vector<bool> bf16_;
  int64_t blocks_ = 0;
};

class GlobalNorm : public Kernel {
 public:
  GlobalNorm(const Graph& graph, const Node& node, const CpuContext& context)
      : squares_(graph, node, context) {}

  int64_t workspace_bytes() const override {
    return squares_.blocks() * static_cast<int64_t>(sizeof(double));
  }

  void run(const KernelArgs& args) override {
    auto* const partials = static_cast<double*>(args.workspace);
    squares_.run(args, partials);
    double squares = 0;
    for (int64_t block = 0; block < squares_.blocks(); ++block) squares += partials[block];
    *static_cast<float*>(args.outputs[0]) = static_cast<float>(std::sqrt(squares));
  }

 private:
  BlockSquares squares_;
};

class SquareSums : public Kernel {
 public:
  SquareSums(const Graph& graph, const Node& node, const CpuContext& context)
      : squares_(graph, node, context) {}

  void run(const KernelArgs& args) override { squares_.run(args, static_cast<double*>(args.outputs[0])); }

 private:
  BlockSquares squares_;
};

class NormOfSquares : public Kernel {
 public:
  NormOfSquares(const Graph& graph, const Node& node, const CpuContext& /*context*/) {
    for (const Value input : node.inputs) parts_.push_back(graph.type(input).shape.numel() / kNormPartBytes);
  }

  void run(const KernelArgs& args) override {
    double squares = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const auto* const partials = static_cast<const double*>(args.inputs[i]);
      for (int64_t part = 0; part < parts_[i]; ++part) squares += partials[part];
    }
    *static_cast<float*>(args.outputs[0]) = static_cast<float>(std::sqrt(squares));
  }

 private:
  std::vector<int64_t> parts_;
};

}  // namespace

KernelDef global_norm_kernel() {
  return {"global_norm", "cpu.global_norm", refuse_nothing, make_kernel<GlobalNorm>};
}

KernelDef square_sums_kernel() {
  return {"square_sums", "cpu.square_sums", refuse_nothing, make_kernel<SquareSums>};
}

KernelDef norm_of_squares_kernel() {
  return {"norm_of_squares", "cpu.norm_of_squares", refuse_nothing, make_kernel<NormOfSquares>};
}

}  // namespace lockstep::cpu
