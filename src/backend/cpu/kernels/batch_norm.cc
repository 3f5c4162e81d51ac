// batch_norm and its gradient over channels-last f32: sums per channel, then one sweep that applies them.
#include <cmath>
#include <cstring>

#include "backend/cpu/channel_sums.h"
#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

class BatchNorm : public Kernel {
 public:
  BatchNorm(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        channels_(graph.type(node.inputs[1]).shape[0]),
        sums_(context, 1,
              graph.type(node.inputs[0]).shape.product(0, graph.type(node.inputs[0]).shape.rank() - 1),
              channels_),
        epsilon_(node.attributes.number("epsilon")),
        momentum_(node.attributes.number("momentum")),
        training_(node.attributes.flag("training")) {}

  // Mean and variance in double, scale and shift, and the partial sums.
  int64_t workspace_bytes() const override {
    return channels_ * static_cast<int64_t>(2 * sizeof(double) + 2 * sizeof(float)) +
           sums_.partial_floats() * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    auto* mean = static_cast<double*>(args.workspace);
    double* variance = mean + channels_;
    auto* scale = reinterpret_cast<float*>(variance + channels_);
    float* shift = scale + channels_;
    const auto* x = static_cast<const float*>(args.inputs[0]);
    if (training_) sums_.moments(x, shift + channels_, mean, variance);
    for (int64_t c = 0; c < channels_; ++c) finish_channel(args, c, mean, variance, scale, shift);
    auto* y = static_cast<float*>(args.outputs[0]);
    sums_.for_blocks([&](int64_t, int64_t first, int64_t rows) {
      context_.simd.channel.affine(y + first, x + first, scale, shift, rows, channels_);
    });
  }

 private:
  void finish_channel(const KernelArgs& args, int64_t c, const double* means, const double* squares,
                      float* scale, float* shift) const {
    const auto in = [&](size_t i) {
      return static_cast<double>(static_cast<const float*>(args.inputs[i])[c]);
    };
    const auto out = [&](size_t i) -> float& { return static_cast<float*>(args.outputs[i])[c]; };
    double mean = in(3);
    double variance = in(4);
    double moved_mean = mean;
    double moved_variance = variance;
    if (training_) {
      const auto count = static_cast<double>(sums_.rows());
      mean = means[c];
      variance = squares[c] / count;
      moved_mean += momentum_ * (mean - in(3));
      moved_variance += momentum_ * (squares[c] / (count - 1) - in(4));
    }
    const double rstd = 1.0 / std::sqrt(variance + epsilon_);
    out(1) = static_cast<float>(mean);
    out(2) = static_cast<float>(rstd);
    scale[c] = static_cast<float>(in(1) * rstd);
    shift[c] = static_cast<float>(in(2) - mean * in(1) * rstd);
    out(3) = static_cast<float>(moved_mean);
    out(4) = static_cast<float>(moved_variance);
  }

  CpuContext context_;
  int64_t channels_;
  ChannelSums sums_;
  double epsilon_;
  double momentum_;
  bool training_;
};

class BatchNormGrad : public Kernel {
 public:
  BatchNormGrad(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        channels_(graph.type(node.inputs[2]).shape[0]),
        sums_(context, 1,
              graph.type(node.inputs[0]).shape.product(0, graph.type(node.inputs[0]).shape.rank() - 1),
              channels_),
        training_(node.attributes.flag("training")) {}

  // The two sums in double; scale, slope and shift; and the partial sums.
  int64_t workspace_bytes() const override {
    return channels_ * static_cast<int64_t>(2 * sizeof(double) + 3 * sizeof(float)) +
           sums_.partial_floats() * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    auto* sum_dy = static_cast<double*>(args.workspace);
    double* sum_dy_h = sum_dy + channels_;
    auto* scale = reinterpret_cast<float*>(sum_dy_h + channels_);
    float* slope = scale + channels_;
    float* shift = slope + channels_;
    const auto* dy = static_cast<const float*>(args.inputs[0]);
    const auto* x = static_cast<const float*>(args.inputs[1]);
    const auto* weight = static_cast<const float*>(args.inputs[2]);
    const auto* mean = static_cast<const float*>(args.inputs[3]);
    const auto* rstd = static_cast<const float*>(args.inputs[4]);
    sums_.gradient_sums(dy, x, mean, rstd, shift + channels_, sum_dy, sum_dy_h);
    const double share = training_ ? 1.0 / static_cast<double>(sums_.rows()) : 0.0;
    for (int64_t c = 0; c < channels_; ++c) {
      static_cast<float*>(args.outputs[1])[c] = static_cast<float>(sum_dy_h[c]);
      static_cast<float*>(args.outputs[2])[c] = static_cast<float>(sum_dy[c]);
      const double factor = static_cast<double>(weight[c]) * static_cast<double>(rstd[c]);
      scale[c] = static_cast<float>(factor);
      slope[c] = static_cast<float>(-factor * static_cast<double>(rstd[c]) * sum_dy_h[c] * share);
      shift[c] = static_cast<float>(-factor * sum_dy[c] * share);
    }
    auto* dx = static_cast<float*>(args.outputs[0]);
    sums_.for_blocks([&](int64_t, int64_t first, int64_t rows) {
      context_.simd.channel.gradient(dx + first, dy + first, x + first, mean, scale, slope, shift, rows,
                                     channels_);
    });
  }

 private:
  CpuContext context_;
  int64_t channels_;
  ChannelSums sums_;
  bool training_;
};

}  // namespace

KernelDef batch_norm_kernel() {
  return {"batch_norm", "cpu.batch_norm", refuse_unless_f32, make_kernel<BatchNorm>};
}
KernelDef batch_norm_grad_kernel() {
  return {"batch_norm_grad", "cpu.batch_norm_grad", refuse_unless_f32, make_kernel<BatchNormGrad>};
}

}  // namespace lockstep::cpu
