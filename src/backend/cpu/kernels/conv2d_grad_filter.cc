// conv2d_grad_filter through oneDNN: fixed groups of images give partial sums in oneDNN's layout, which are
// added in the order of the groups and brought into the graph's layout. Partial sums are f32.
#include <algorithm>

#include "backend/cpu/conv_desc.h"
#include "backend/cpu/filter_layout.h"
#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

constexpr int64_t kMaxGroups = 8;
// Adding up a group's partial sums costs about as much as 10 rows of the product; a group has at least this
// many.
constexpr int64_t kMinRows = 128;

int64_t rows_of(const ConvShape& s) { return s.batch * s.window.rows.output * s.window.columns.output; }

int64_t images_per_group(const ConvShape& s) {
  const int64_t groups = std::clamp<int64_t>(rows_of(s) / kMinRows, 1, kMaxGroups);
  for (int64_t images = ceil_div(s.batch, groups); images < s.batch; ++images)
    if (s.batch % images == 0) return images;
  return s.batch;
}

ConvDesc describe(const ConvShape& shape, DType dtype) {
  return {shape, images_per_group(shape), onednn_type(dtype), dnnl::memory::data_type::f32};
}

class ConvGradFilter : public Kernel {
 public:
  ConvGradFilter(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        dtype_(graph.type(node.inputs[0]).dtype),
        filter_numel_(graph.type(node.outputs[0]).shape.numel()) {
    const ConvShape shape = conv_shape(graph, node);
    groups_ = shape.batch / images_per_group(shape);
    onednn::make_single_threaded([&] {
      const ConvDesc desc = describe(shape, dtype_);
      const auto primitive_desc = desc.grad_filter();
      primitive_ = dnnl::convolution_backward_weights(primitive_desc);
      scratchpad_ = primitive_desc.scratchpad_desc();
      images_ = desc.images;
      results_ = desc.results;
      partial_ = primitive_desc.diff_weights_desc();
      layout_ = FilterLayout(desc.plain_filter, partial_, FilterLayout::Direction::kUnpack);
    });
  }

  int64_t workspace_bytes() const override {
    return groups_ * partial_bytes() + context_.pool.threads() * onednn::scratch_bytes(scratchpad_) +
           (dtype_ == DType::kF32 ? 0 : 4 * filter_numel_);
  }

  KernelMemory memory() const override { return {2 * onednn::kPrimitiveBytes, 0}; }  // with the reorder

  void run(const KernelArgs& args) override {
    auto* partials = static_cast<std::byte*>(args.workspace);
    std::byte* scratch = partials + groups_ * partial_bytes();
    std::byte* sums = scratch + context_.pool.threads() * onednn::scratch_bytes(scratchpad_);
    const auto images_bytes = static_cast<int64_t>(images_.get_size());
    const auto results_bytes = static_cast<int64_t>(results_.get_size());
    context_.pool.run_indexed(groups_, [&](int64_t group, int thread) {
      const auto* x = static_cast<const std::byte*>(args.inputs[0]) + group * images_bytes;
      const auto* dy = static_cast<const std::byte*>(args.inputs[1]) + group * results_bytes;
      onednn::run_single_threaded(
          primitive_, {{DNNL_ARG_SRC, onednn::view(images_, x)},
                       {DNNL_ARG_DIFF_DST, onednn::view(results_, dy)},
                       {DNNL_ARG_DIFF_WEIGHTS, onednn::view(partial_, partials + group * partial_bytes())},
                       {DNNL_ARG_SCRATCHPAD,
                        onednn::view(scratchpad_, scratch + thread * onednn::scratch_bytes(scratchpad_))}});
    });
    void* result = dtype_ == DType::kF32 ? args.outputs[0] : sums;
    context_.pool.run(layout_.parts(), [&](int64_t part) {
      add_partials(partials, part);
      layout_.run_part(part, partials, result);
    });
    if (dtype_ == DType::kF32) return;
    for_rows(context_, filter_numel_, kTaskElements, [&](int64_t begin, int64_t end) {
      context_.simd.pointwise.to_bf16(static_cast<uint16_t*>(args.outputs[0]) + begin,
                                      static_cast<const float*>(result) + begin, end - begin);
    });
  }

 private:
  int64_t partial_bytes() const { return ceil_div(layout_.packed_bytes(), 64) * 64; }

  // Into the first group's, in tiles that stay in the first cache.
  void add_partials(std::byte* partials, int64_t part) const {
    constexpr int64_t kTile = 2048;
    const auto add = context_.simd.pointwise.tile[static_cast<size_t>(Scalar::add)];
    const int64_t count = layout_.packed_part_bytes() / 4;
    auto* sum = reinterpret_cast<float*>(partials + part * layout_.packed_part_bytes());
    for (int64_t at = 0; at < count; at += kTile)
      for (int64_t group = 1; group < groups_; ++group)
        add(sum + at, sum + at, sum + group * (partial_bytes() / 4) + at, nullptr,
            std::min(kTile, count - at));
  }

  CpuContext context_;
  DType dtype_;
  int64_t filter_numel_;
  int64_t groups_ = 1;
  dnnl::primitive primitive_;
  dnnl::memory::desc images_, results_, partial_, scratchpad_;
  FilterLayout layout_;
};

std::string refuse(const Graph& graph, const Node& node) {
  const ConvShape shape = conv_shape(graph, node);
  const DType dtype = graph.type(node.inputs[0]).dtype;
  if (shape.batch == 0) return "the batch is empty";
  if (dtype == DType::kF16) return "f16 is not implemented";
  return refuse_unless_fast([&] { return describe(shape, dtype).grad_filter(); });
}

}  // namespace

KernelDef conv2d_grad_filter_kernel() {
  return {"conv2d_grad_filter", "cpu.conv2d_grad_filter", refuse, make_kernel<ConvGradFilter>};
}

}  // namespace lockstep::cpu
