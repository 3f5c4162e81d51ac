// avg_pool2d and its gradient: weighted sums over the pixels of a window, or over the windows of a pixel.
#include <vector>

#include "backend/cpu/pool_walk.h"
#include "backend/cpu/simd/simd.h"
#include "ops/pool_window.h"

namespace lockstep::cpu {
namespace {

class AvgPool : public Kernel {
 public:
  AvgPool(const Graph& graph, const Node& node, const CpuContext& context, bool gradient)
      : context_(context),
        walk_(images(graph, node, gradient), pool_window(images(graph, node, gradient), node.attributes)),
        gradient_(gradient) {
    const bool all = node.attributes.flag("count_include_pad");
    const int64_t columns = walk_.window.columns.output;
    for (int64_t at = 0; at < walk_.windows(); ++at)
      shares_.push_back(1.0f /
                        static_cast<float>(pool_divisor(walk_.window, at / columns, at % columns, all)));
  }

  void run(const KernelArgs& args) override {
    const int64_t from = (gradient_ ? walk_.windows() : walk_.pixels()) * walk_.channels;
    const int64_t to = gradient_ ? walk_.pixels() : walk_.windows();
    walk_.for_positions(context_, to, [&](int64_t image, int64_t begin, int64_t end) {
      const float* in = static_cast<const float*>(args.inputs[0]) + image * from;
      std::vector<const float*> rows;
      std::vector<float> weights;
      for (int64_t at = begin; at < end; ++at) {
        rows.clear();
        weights.clear();
        const auto take = [&](int64_t source, int64_t window) {
          rows.push_back(in + source * walk_.channels);
          weights.push_back(shares_[static_cast<size_t>(window)]);
        };
        if (gradient_)
          walk_.for_windows(at, [&](int64_t window) { take(window, window); });
        else
          walk_.for_pixels(at, [&](int64_t pixel) { take(pixel, at); });
        context_.simd.pool.weighted_sum(
            static_cast<float*>(args.outputs[0]) + (image * to + at) * walk_.channels, rows.data(),
            weights.data(), static_cast<int64_t>(rows.size()), walk_.channels);
      }
    });
  }

 private:
  static const Shape& images(const Graph& graph, const Node& node, bool gradient) {
    return graph.type(gradient ? node.outputs[0] : node.inputs[0]).shape;
  }

  CpuContext context_;
  PoolWalk walk_;
  bool gradient_;
  std::vector<float> shares_;  // per window: what a pixel counts in it
};

template <bool gradient>
std::unique_ptr<Kernel> make(const Graph& graph, const Node& node, const CpuContext& context) {
  return std::make_unique<AvgPool>(graph, node, context, gradient);
}

}  // namespace

KernelDef avg_pool2d_kernel() { return {"avg_pool2d", "cpu.avg_pool2d", refuse_unless_f32, make<false>}; }
KernelDef avg_pool2d_grad_kernel() {
  return {"avg_pool2d_grad", "cpu.avg_pool2d_grad", refuse_unless_f32, make<true>};
}

}  // namespace lockstep::cpu
