// conv2d and its gradients for large filters over few positions, on the filter as it lies in memory.
//
// There a filter is used so few times that bringing it into another layout costs as much as the product, and
// much of a window lies over padding. 512 -> 512 channels, 3x3, sixteen images of 2x2 on one core: 1.4, 1.7
// and 1.5 ms (result, gradient of images, of filters) against 4.9, 3.7 and 4.1 through oneDNN and 3.0, 2.7
// and 2.9 over unfolded windows.
#include <algorithm>
#include <vector>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/simd/simd.h"
#include "ops/conv_shape.h"

namespace lockstep::cpu {
namespace {

// Below this (half a MiB) a filter stays in the second cache, and reordering it is cheap.
constexpr int64_t kLargeFilter = 1 << 17;
constexpr int64_t kFewPositions = 128;
constexpr int64_t kFewPositionsGradFilter = 256;  // where oneDNN has partial sums to add up, too
// Rows that share a tap are the same position of different images; with fewer, loads outnumber
// multiplications.
constexpr int64_t kMinBatch = 4;

// Outputs or channels per task.
constexpr int64_t kOutputs = 24;
constexpr int64_t kChannels = 32;

int64_t positions(const ConvShape& s) { return s.window.rows.output * s.window.columns.output; }

std::string refuse(const Graph& graph, const Node& node, int64_t most) {
  const ConvShape shape = conv_shape(graph, node);
  std::string reason = refuse_unless_f32(graph, node);
  if (!reason.empty()) return reason;
  if (shape.groups != 1) return "only for one group";
  if (shape.batch < kMinBatch) return fmt::format("only for {} images or more", kMinBatch);
  if (shape.batch * positions(shape) > most) return fmt::format("only for {} positions or fewer", most);
  return shape.filter().numel() < kLargeFilter ? "the filter is small" : "";
}

// The products of one tap: offsets of the rows of images and of results that it joins.
struct Tap {
  int64_t filter = 0;  // offset of the tap in a filter
  std::vector<int64_t> images, results;
};

// For each tap the positions, for which it lies over the image, of all images.
std::vector<Tap> taps_of(const ConvShape& s, int64_t first_position, int64_t last_position) {
  const WindowAxis& rows = s.window.rows;
  const WindowAxis& columns = s.window.columns;
  std::vector<Tap> taps;
  for (int64_t k = 0; k < s.window.taps(); ++k) {
    Tap tap{k * s.channels, {}, {}};
    for (int64_t at = first_position; at < last_position; ++at) {
      const int64_t h = rows.position(at / columns.output, k / columns.kernel);
      const int64_t w = columns.position(at % columns.output, k % columns.kernel);
      if (!rows.inside(h) || !columns.inside(w)) continue;
      for (int64_t image = 0; image < s.batch; ++image) {
        tap.images.push_back(((image * rows.input + h) * columns.input + w) * s.channels);
        tap.results.push_back((image * positions(s) + at) * s.outputs);
      }
    }
    if (!tap.images.empty()) taps.push_back(std::move(tap));
  }
  return taps;
}

class ForwardDirect : public Kernel {
 public:
  ForwardDirect(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), shape_(conv_shape(graph, node)) {
    for (int64_t at = 0; at < positions(shape_); ++at) {
      Position position;
      for (int64_t image = 0; image < shape_.batch; ++image)
        position.results.push_back((image * positions(shape_) + at) * shape_.outputs);
      for (const Tap& tap : taps_of(shape_, at, at + 1)) {
        position.filters.push_back(tap.filter);
        position.images.insert(position.images.end(), tap.images.begin(), tap.images.end());
      }
      positions_.push_back(std::move(position));
    }
  }

  // A task takes a few outputs through all positions, so that their filters are read from memory once.
  void run(const KernelArgs& args) override {
    const int64_t stride = shape_.window.taps() * shape_.channels;
    for_rows(context_, shape_.outputs, kOutputs, [&](int64_t begin, int64_t end) {
      for (const Position& position : positions_)
        context_.simd.direct_conv.results(
            static_cast<float*>(args.outputs[0]) + begin, position.results.data(),
            static_cast<const float*>(args.inputs[0]), position.images.data(),
            static_cast<const float*>(args.inputs[1]) + begin * stride, position.filters.data(),
            static_cast<int64_t>(position.filters.size()), shape_.batch, end - begin, shape_.channels,
            stride);
    });
  }

 private:
  struct Position {
    std::vector<int64_t> results, images, filters;  // images: for each tap, for each image of the batch
  };
  CpuContext context_;
  ConvShape shape_;
  std::vector<Position> positions_;
};

class GradInputDirect : public Kernel {
 public:
  GradInputDirect(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), shape_(conv_shape(graph, node)), taps_(taps_of(shape_, 0, positions(shape_))) {}

  void run(const KernelArgs& args) override {
    auto* dx = static_cast<float*>(args.outputs[0]);
    const int64_t pixels = shape_.input().numel() / shape_.channels;
    for_rows(context_, shape_.channels, kChannels, [&](int64_t begin, int64_t end) {
      for (int64_t pixel = 0; pixel < pixels; ++pixel)
        std::fill_n(dx + pixel * shape_.channels + begin, end - begin, 0.0f);
      for (const Tap& tap : taps_)
        context_.simd.direct_conv.grad_input(dx + begin, tap.images.data(),
                                             static_cast<const float*>(args.inputs[0]), tap.results.data(),
                                             static_cast<const float*>(args.inputs[1]) + tap.filter + begin,
                                             static_cast<int64_t>(tap.images.size()), shape_.outputs,
                                             end - begin, shape_.window.taps() * shape_.channels);
    });
  }

 private:
  CpuContext context_;
  ConvShape shape_;
  std::vector<Tap> taps_;
};

class GradFilterDirect : public Kernel {
 public:
  GradFilterDirect(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), shape_(conv_shape(graph, node)), taps_(taps_of(shape_, 0, positions(shape_))) {}

  void run(const KernelArgs& args) override {
    auto* dw = static_cast<float*>(args.outputs[0]);
    const int64_t stride = shape_.window.taps() * shape_.channels;
    for_rows(context_, shape_.outputs, kOutputs, [&](int64_t begin, int64_t end) {
      if (static_cast<int64_t>(taps_.size()) < shape_.window.taps())  // some tap lies over padding everywhere
        std::fill_n(dw + begin * stride, (end - begin) * stride, 0.0f);
      for (const Tap& tap : taps_)
        context_.simd.direct_conv.grad_filter(
            dw + begin * stride + tap.filter, static_cast<const float*>(args.inputs[1]) + begin,
            tap.results.data(), static_cast<const float*>(args.inputs[0]), tap.images.data(),
            static_cast<int64_t>(tap.images.size()), end - begin, shape_.channels, stride);
    });
  }

 private:
  CpuContext context_;
  ConvShape shape_;
  std::vector<Tap> taps_;
};

std::string refuse_few(const Graph& graph, const Node& node) { return refuse(graph, node, kFewPositions); }
std::string refuse_grad_filter(const Graph& graph, const Node& node) {
  return refuse(graph, node, kFewPositionsGradFilter);
}

}  // namespace

KernelDef conv2d_direct_kernel() {
  return {"conv2d", "cpu.conv2d_direct", refuse_few, make_kernel<ForwardDirect>};
}
KernelDef conv2d_grad_input_direct_kernel() {
  return {"conv2d_grad_input", "cpu.conv2d_grad_input_direct", refuse_few, make_kernel<GradInputDirect>};
}
KernelDef conv2d_grad_filter_direct_kernel() {
  return {"conv2d_grad_filter", "cpu.conv2d_grad_filter_direct", refuse_grad_filter,
          make_kernel<GradFilterDirect>};
}

}  // namespace lockstep::cpu
