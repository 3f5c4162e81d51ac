// group_norm and its gradient over channels-last f32: sums per sample and channel, folded into groups, then
// one sweep that applies them.
#include <cmath>

#include "backend/cpu/channel_sums.h"
#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

ChannelSums sums_of(const CpuContext& context, const Shape& shape) {
  return {context, shape[0], shape.product(1, shape.rank() - 1), shape[-1]};
}

class GroupNorm : public Kernel {
 public:
  GroupNorm(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        sums_(sums_of(context, graph.type(node.inputs[0]).shape)),
        channels_(sums_.channels()),
        groups_(node.attributes.integer("groups")),
        epsilon_(node.attributes.number("epsilon")) {}

  // Per sample: mean and squares in double, scale and shift; then the partial sums.
  int64_t workspace_bytes() const override {
    return sums_.samples() * channels_ * static_cast<int64_t>(2 * sizeof(double) + 2 * sizeof(float)) +
           sums_.partial_floats() * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    const int64_t total = sums_.samples() * channels_;
    auto* mean = static_cast<double*>(args.workspace);
    double* squares = mean + total;
    auto* scale = reinterpret_cast<float*>(squares + total);
    float* shift = scale + total;
    const auto* x = static_cast<const float*>(args.inputs[0]);
    sums_.moments(x, shift + total, mean, squares);
    context_.pool.run(sums_.samples() * groups_,
                      [&](int64_t task) { finish_group(args, task, mean, squares, scale, shift); });
    auto* y = static_cast<float*>(args.outputs[0]);
    sums_.for_blocks([&](int64_t sample, int64_t first, int64_t rows) {
      context_.simd.channel.affine(y + first, x + first, scale + sample * channels_,
                                   shift + sample * channels_, rows, channels_);
    });
  }

 private:
  // The channels of a group have equally many pixels: its mean is the mean of theirs.
  void finish_group(const KernelArgs& args, int64_t task, const double* means, const double* squares,
                    float* scale, float* shift) const {
    const int64_t width = channels_ / groups_;
    const int64_t first = task * width;  // groups follow each other within a sample, and samples too
    const auto rows = static_cast<double>(sums_.rows());
    double mean = 0;
    for (int64_t c = first; c < first + width; ++c) mean += means[c];
    mean /= static_cast<double>(width);
    double square = 0;
    for (int64_t c = first; c < first + width; ++c) {
      const double delta = means[c] - mean;
      square += squares[c] + rows * delta * delta;
    }
    const double rstd = 1.0 / std::sqrt(square / (rows * static_cast<double>(width)) + epsilon_);
    static_cast<float*>(args.outputs[1])[task] = static_cast<float>(mean);
    static_cast<float*>(args.outputs[2])[task] = static_cast<float>(rstd);
    for (int64_t c = first; c < first + width; ++c) {
      const auto weight = static_cast<double>(static_cast<const float*>(args.inputs[1])[c % channels_]);
      const auto bias = static_cast<double>(static_cast<const float*>(args.inputs[2])[c % channels_]);
      scale[c] = static_cast<float>(weight * rstd);
      shift[c] = static_cast<float>(bias - mean * weight * rstd);
    }
  }

  CpuContext context_;
  ChannelSums sums_;
  int64_t channels_;
  int64_t groups_;
  double epsilon_;
};

class GroupNormGrad : public Kernel {
 public:
  GroupNormGrad(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        sums_(sums_of(context, graph.type(node.inputs[0]).shape)),
        channels_(sums_.channels()),
        groups_(node.attributes.integer("groups")) {}

  // Per sample: the two sums in double; mean, rstd, scale, slope and shift; then the partial sums.
  int64_t workspace_bytes() const override {
    return sums_.samples() * channels_ * static_cast<int64_t>(2 * sizeof(double) + 5 * sizeof(float)) +
           sums_.partial_floats() * static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArgs& args) override {
    const int64_t total = sums_.samples() * channels_;
    Scratch scratch{};
    scratch.sum_dy = static_cast<double*>(args.workspace);
    scratch.sum_dy_h = scratch.sum_dy + total;
    scratch.mean = reinterpret_cast<float*>(scratch.sum_dy_h + total);
    scratch.rstd = scratch.mean + total;
    scratch.scale = scratch.rstd + total;
    scratch.slope = scratch.scale + total;
    scratch.shift = scratch.slope + total;
    const int64_t width = channels_ / groups_;
    for (int64_t c = 0; c < total; ++c) {
      scratch.mean[c] = static_cast<const float*>(args.inputs[3])[c / width];
      scratch.rstd[c] = static_cast<const float*>(args.inputs[4])[c / width];
    }
    const auto* dy = static_cast<const float*>(args.inputs[0]);
    const auto* x = static_cast<const float*>(args.inputs[1]);
    sums_.gradient_sums(dy, x, scratch.mean, scratch.rstd, nullptr, scratch.shift + total, scratch.sum_dy,
                        scratch.sum_dy_h);
    context_.pool.run(sums_.samples() * groups_, [&](int64_t task) { finish_group(args, task, scratch); });
    add_samples(scratch.sum_dy_h, static_cast<float*>(args.outputs[1]));
    add_samples(scratch.sum_dy, static_cast<float*>(args.outputs[2]));
    auto* dx = static_cast<float*>(args.outputs[0]);
    sums_.for_blocks([&](int64_t sample, int64_t first, int64_t rows) {
      const int64_t at = sample * channels_;
      context_.simd.channel.gradient(dx + first, dy + first, x + first, scratch.mean + at, scratch.scale + at,
                                     scratch.slope + at, scratch.shift + at, rows, channels_);
    });
  }

 private:
  struct Scratch {
    double *sum_dy, *sum_dy_h;
    float *mean, *rstd, *scale, *slope, *shift;
  };

  void finish_group(const KernelArgs& args, int64_t task, const Scratch& scratch) const {
    const int64_t width = channels_ / groups_;
    const int64_t first = task * width;
    const auto* weights = static_cast<const float*>(args.inputs[2]);
    double mean_g = 0;
    double mean_gh = 0;
    for (int64_t c = first; c < first + width; ++c) {
      const auto weight = static_cast<double>(weights[c % channels_]);
      mean_g += weight * scratch.sum_dy[c];
      mean_gh += weight * scratch.sum_dy_h[c];
    }
    const double count = static_cast<double>(sums_.rows()) * static_cast<double>(width);
    const auto rstd = static_cast<double>(scratch.rstd[first]);
    for (int64_t c = first; c < first + width; ++c) {
      scratch.scale[c] = static_cast<float>(static_cast<double>(weights[c % channels_]) * rstd);
      scratch.slope[c] = static_cast<float>(-rstd * rstd * mean_gh / count);
      scratch.shift[c] = static_cast<float>(-rstd * mean_g / count);
    }
  }

  void add_samples(const double* sums, float* out) const {
    for (int64_t c = 0; c < channels_; ++c) {
      double total = 0;
      for (int64_t sample = 0; sample < sums_.samples(); ++sample) total += sums[sample * channels_ + c];
      out[c] = static_cast<float>(total);
    }
  }

  CpuContext context_;
  ChannelSums sums_;
  int64_t channels_;
  int64_t groups_;
};

}  // namespace

KernelDef group_norm_kernel() {
  return {"group_norm", "cpu.group_norm", refuse_unless_f32, make_kernel<GroupNorm>};
}
KernelDef group_norm_grad_kernel() {
  return {"group_norm_grad", "cpu.group_norm_grad", refuse_unless_f32, make_kernel<GroupNormGrad>};
}

}  // namespace lockstep::cpu
