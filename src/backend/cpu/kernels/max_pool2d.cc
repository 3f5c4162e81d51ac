// max_pool2d and its gradient. The gradient gathers: every pixel sums what the windows over it send back, so
// that no two tasks write one pixel.
#include <vector>

#include "backend/cpu/pool_walk.h"
#include "backend/cpu/simd/simd.h"
#include "ops/pool_window.h"

namespace lockstep::cpu {
namespace {

class MaxPool : public Kernel {
 public:
  MaxPool(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        walk_(graph.type(node.inputs[0]).shape,
              pool_window(graph.type(node.inputs[0]).shape, node.attributes)) {}

  void run(const KernelArgs& args) override {
    walk_.for_positions(context_, walk_.windows(), [&](int64_t image, int64_t begin, int64_t end) {
      const float* x = static_cast<const float*>(args.inputs[0]) + image * walk_.pixels() * walk_.channels;
      std::vector<const float*> rows;
      std::vector<int32_t> places;
      for (int64_t at = begin; at < end; ++at) {
        rows.clear();
        places.clear();
        walk_.for_pixels(at, [&](int64_t pixel) {
          rows.push_back(x + pixel * walk_.channels);
          places.push_back(static_cast<int32_t>(pixel));
        });
        const int64_t out = (image * walk_.windows() + at) * walk_.channels;
        context_.simd.pool.largest(static_cast<float*>(args.outputs[0]) + out,
                                   static_cast<int32_t*>(args.outputs[1]) + out, rows.data(), places.data(),
                                   static_cast<int64_t>(rows.size()), walk_.channels);
      }
    });
  }

 private:
  CpuContext context_;
  PoolWalk walk_;
};

class MaxPoolGrad : public Kernel {
 public:
  MaxPoolGrad(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        walk_(graph.type(node.outputs[0]).shape,
              pool_window(graph.type(node.outputs[0]).shape, node.attributes)) {}

  void run(const KernelArgs& args) override {
    walk_.for_positions(context_, walk_.pixels(), [&](int64_t image, int64_t begin, int64_t end) {
      const int64_t first = image * walk_.windows() * walk_.channels;
      std::vector<const float*> rows;
      std::vector<const int32_t*> indices;
      for (int64_t pixel = begin; pixel < end; ++pixel) {
        rows.clear();
        indices.clear();
        walk_.for_windows(pixel, [&](int64_t window) {
          rows.push_back(static_cast<const float*>(args.inputs[0]) + first + window * walk_.channels);
          indices.push_back(static_cast<const int32_t*>(args.inputs[1]) + first + window * walk_.channels);
        });
        context_.simd.pool.sum_where(
            static_cast<float*>(args.outputs[0]) + (image * walk_.pixels() + pixel) * walk_.channels,
            rows.data(), indices.data(), static_cast<int32_t>(pixel), static_cast<int64_t>(rows.size()),
            walk_.channels);
      }
    });
  }

 private:
  CpuContext context_;
  PoolWalk walk_;
};

}  // namespace

KernelDef max_pool2d_kernel() {
  return {"max_pool2d", "cpu.max_pool2d", refuse_unless_f32, make_kernel<MaxPool>};
}
KernelDef max_pool2d_grad_kernel() {
  return {"max_pool2d_grad", "cpu.max_pool2d_grad", refuse_unless_f32, make_kernel<MaxPoolGrad>};
}

}  // namespace lockstep::cpu
