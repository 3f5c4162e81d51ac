// batch_norm and its gradient over channels-last f32: sums per channel, then one sweep that applies them.
#include <cmath>
#include <cstring>

#include "backend/cpu/channel_sums.h"
#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

// y = x * scale + shift, from the statistics as stored: forward and backward get the same bits, so that they
// agree on which elements a relu lets through.
float scale_of(float weight, float rstd) { return static_cast<float>(double{weight} * double{rstd}); }
float shift_of(float weight, float bias, float mean, float rstd) {
  return static_cast<float>(double{bias} - double{mean} * double{weight} * double{rstd});
}

class BatchNorm : public Kernel {
 public:
  BatchNorm(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        channels_(graph.type(node.inputs[1]).shape[0]),
        sums_(context, 1,
              graph.type(node.inputs[0]).shape.product(0, graph.type(node.inputs[0]).shape.rank() - 1),
              channels_),
        epsilon_(node.attributes.number("epsilon")),
        training_(node.attributes.flag("training")),
        relu_(node.attributes.flag("relu")) {}

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
    const auto apply = relu_ ? context_.simd.channel.affine_relu : context_.simd.channel.affine;
    sums_.for_blocks([&](int64_t, int64_t first, int64_t rows) {
      apply(y + first, x + first, scale, shift, rows, channels_);
    });
  }

 private:
  void finish_channel(const KernelArgs& args, int64_t c, const double* means, const double* squares,
                      float* scale, float* shift) const {
    const auto in = [&](size_t i) {
      return static_cast<double>(static_cast<const float*>(args.inputs[i])[c]);
    };
    const auto out = [&](size_t i) -> float& { return static_cast<float*>(args.outputs[i])[c]; };
    const auto count = static_cast<double>(sums_.rows());
    const double mean = training_ ? means[c] : in(3);
    const double variance = training_ ? squares[c] / count : in(4);
    out(1) = static_cast<float>(mean);
    out(2) = static_cast<float>(1.0 / std::sqrt(variance + epsilon_));
    scale[c] = scale_of(in(1), out(2));
    shift[c] = shift_of(in(1), in(2), out(1), out(2));
    if (training_) out(3) = static_cast<float>(squares[c] / (count - 1));
  }

  CpuContext context_;
  int64_t channels_;
  ChannelSums sums_;
  double epsilon_;
  bool training_;
  bool relu_;
};

class BatchNormGrad : public Kernel {
 public:
  BatchNormGrad(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        channels_(graph.type(node.inputs[2]).shape[0]),
        sums_(context, 1,
              graph.type(node.inputs[0]).shape.product(0, graph.type(node.inputs[0]).shape.rank() - 1),
              channels_),
        training_(node.attributes.flag("training")),
        relu_(node.attributes.flag("relu")) {}

  // The two sums in double; scale and shift of the forward; slope and shift of the gradient; and the partial
  // sums.
  int64_t workspace_bytes() const override {
    return channels_ * static_cast<int64_t>(2 * sizeof(double) + 4 * sizeof(float)) +
           sums_.partial_floats() * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    auto* sum_dy = static_cast<double*>(args.workspace);
    double* sum_dy_h = sum_dy + channels_;
    auto* scale = reinterpret_cast<float*>(sum_dy_h + channels_);
    float* gate_shift = scale + channels_;
    float* slope = gate_shift + channels_;
    float* shift = slope + channels_;
    const auto in = [&](size_t i) { return static_cast<const float*>(args.inputs[i]); };
    const float *dy = in(0), *x = in(1), *weight = in(2), *mean = in(3), *rstd = in(4);
    for (int64_t c = 0; c < channels_; ++c) {
      scale[c] = scale_of(weight[c], rstd[c]);
      if (relu_) gate_shift[c] = shift_of(weight[c], in(5)[c], mean[c], rstd[c]);
    }
    const ChannelGate gate{scale, gate_shift};
    sums_.gradient_sums(dy, x, mean, rstd, relu_ ? &gate : nullptr, shift + channels_, sum_dy, sum_dy_h);
    const double share = training_ ? 1.0 / static_cast<double>(sums_.rows()) : 0.0;
    for (int64_t c = 0; c < channels_; ++c) {
      static_cast<float*>(args.outputs[1])[c] = static_cast<float>(sum_dy_h[c]);
      static_cast<float*>(args.outputs[2])[c] = static_cast<float>(sum_dy[c]);
      const double factor = -double{weight[c]} * double{rstd[c]} * share;
      slope[c] = static_cast<float>(factor * double{rstd[c]} * sum_dy_h[c]);
      shift[c] = static_cast<float>(factor * sum_dy[c]);
    }
    auto* dx = static_cast<float*>(args.outputs[0]);
    const ChannelLoops& loops = context_.simd.channel;
    sums_.for_blocks([&](int64_t, int64_t first, int64_t rows) {
      if (relu_)
        loops.gradient_relu(dx + first, dy + first, x + first, mean, slope, shift, gate, rows, channels_);
      else
        loops.gradient(dx + first, dy + first, x + first, mean, scale, slope, shift, rows, channels_);
    });
  }

 private:
  CpuContext context_;
  int64_t channels_;
  ChannelSums sums_;
  bool training_;
  bool relu_;
};

}  // namespace

KernelDef batch_norm_kernel() {
  return {"batch_norm", "cpu.batch_norm", refuse_unless_f32, make_kernel<BatchNorm>};
}
KernelDef batch_norm_grad_kernel() {
  return {"batch_norm_grad", "cpu.batch_norm_grad", refuse_unless_f32, make_kernel<BatchNormGrad>};
}

}  // namespace lockstep::cpu
