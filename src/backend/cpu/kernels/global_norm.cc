// global_norm: squares summed by fixed blocks of 1024 elements, block sums added in index order in double.
#include <cmath>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

constexpr int64_t kBlocksPerTask = 64;

class GlobalNorm : public Kernel {
 public:
  GlobalNorm(const Graph& graph, const Node& node, const CpuContext& context) : context_(context) {
    for (const Value input : node.inputs) {
      lengths_.push_back(graph.type(input).shape.numel());
      bf16_.push_back(graph.type(input).dtype == DType::kBF16);
    }
  }

  int64_t workspace_bytes() const override {
    int64_t blocks = 0;
    for (const int64_t length : lengths_) blocks += norm_blocks(length);
    return blocks * static_cast<int64_t>(sizeof(double));
  }

  void run(const KernelArgs& args) override {
    auto* partials = static_cast<double*>(args.workspace);
    int64_t used = 0;
    for (size_t i = 0; i < lengths_.size(); ++i) {
      const void* x = args.inputs[i];
      for_rows(context_, norm_blocks(lengths_[i]), kBlocksPerTask, [&](int64_t begin, int64_t end) {
        const Norm2Loops& loops = context_.simd.norm2;
        if (bf16_[i])
          loops.block_squares_bf16(static_cast<const uint16_t*>(x), lengths_[i], begin, end, partials + used);
        else
          loops.block_squares(static_cast<const float*>(x), lengths_[i], begin, end, partials + used);
      });
      used += norm_blocks(lengths_[i]);
    }
    double squares = 0;
    for (int64_t block = 0; block < used; ++block) squares += partials[block];
    *static_cast<float*>(args.outputs[0]) = static_cast<float>(std::sqrt(squares));
  }

 private:
  CpuContext context_;
  std::vector<int64_t> lengths_;
  std::vector<bool> bf16_;
};

}  // namespace

KernelDef global_norm_kernel() {
  return {"global_norm", "cpu.global_norm", refuse_nothing, make_kernel<GlobalNorm>};
}

}  // namespace lockstep::cpu
