// conv2d and conv2d_grad_input through oneDNN: the filter is brought into oneDNN's layout, then fixed groups
// of images run one primitive each. Every image's result is computed on one thread in one order.
#include "backend/cpu/conv_desc.h"
#include "backend/cpu/filter_layout.h"

namespace lockstep::cpu {
namespace {

constexpr int64_t kTasks = 16;

std::string refuse_common(const ConvShape& shape, DType dtype) {
  if (shape.batch == 0) return "the batch is empty";
  return dtype == DType::kF16 ? "f16 is not implemented" : "";
}

// What forward and grad_input share: one operand of images, one of filters, one result of images.
class ConvImages : public Kernel {
 public:
  ConvImages(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        shape_(conv_shape(graph, node)),
        dtype_(graph.type(node.inputs[0]).dtype),
        images_(images_per_task(shape_.batch, kTasks)) {}

  int64_t workspace_bytes() const override {
    return aligned(layout_.packed_bytes()) + context_.pool.threads() * onednn::scratch_bytes(scratchpad_);
  }

  KernelMemory memory() const override { return {2 * onednn::kPrimitiveBytes, 0}; }  // with the reorder

  void run(const KernelArgs& args) override {
    auto* packed = static_cast<std::byte*>(args.workspace);
    std::byte* scratch = packed + aligned(layout_.packed_bytes());
    context_.pool.run(layout_.parts(), [&](int64_t part) { layout_.run_part(part, args.inputs[1], packed); });
    const auto from_bytes = static_cast<int64_t>(from_.get_size());
    const auto to_bytes = static_cast<int64_t>(to_.get_size());
    context_.pool.run_indexed(shape_.batch / images_, [&](int64_t task, int thread) {
      onednn::run_single_threaded(
          primitive_,
          {{from_argument_,
            onednn::view(from_, static_cast<const std::byte*>(args.inputs[0]) + task * from_bytes)},
           {DNNL_ARG_WEIGHTS, onednn::view(filter_, packed)},
           {to_argument_, onednn::view(to_, static_cast<std::byte*>(args.outputs[0]) + task * to_bytes)},
           {DNNL_ARG_SCRATCHPAD,
            onednn::view(scratchpad_, scratch + thread * onednn::scratch_bytes(scratchpad_))}});
    });
  }

 protected:
  template <typename Primitive, typename Desc>
  void set(const Desc& desc, const dnnl::memory::desc& plain_filter) {
    primitive_ = Primitive(desc);
    scratchpad_ = desc.scratchpad_desc();
    filter_ = desc.weights_desc();
    layout_ = FilterLayout(plain_filter, filter_, FilterLayout::Direction::kPack);
  }
  static int64_t aligned(int64_t bytes) { return ceil_div(bytes, 64) * 64; }

  CpuContext context_;
  ConvShape shape_;
  DType dtype_;
  int64_t images_;
  FilterLayout layout_;
  dnnl::primitive primitive_;
  dnnl::memory::desc from_, filter_, to_, scratchpad_;
  int from_argument_ = 0;
  int to_argument_ = 0;
};

class ConvForward : public ConvImages {
 public:
  ConvForward(const Graph& graph, const Node& node, const CpuContext& context)
      : ConvImages(graph, node, context) {
    onednn::make_single_threaded([&] {
      const ConvDesc desc(shape_, images_, onednn_type(dtype_));
      set<dnnl::convolution_forward>(desc.forward(), desc.plain_filter);
      from_ = desc.images;
      to_ = desc.results;
    });
    from_argument_ = DNNL_ARG_SRC;
    to_argument_ = DNNL_ARG_DST;
  }
};

class ConvGradInput : public ConvImages {
 public:
  ConvGradInput(const Graph& graph, const Node& node, const CpuContext& context)
      : ConvImages(graph, node, context) {
    onednn::make_single_threaded([&] {
      const ConvDesc desc(shape_, images_, onednn_type(dtype_));
      set<dnnl::convolution_backward_data>(desc.grad_input(), desc.plain_filter);
      from_ = desc.results;
      to_ = desc.images;
    });
    from_argument_ = DNNL_ARG_DIFF_DST;
    to_argument_ = DNNL_ARG_DIFF_SRC;
  }
};

template <typename Describe>
std::string refuse(const Graph& graph, const Node& node, const Describe& describe) {
  const ConvShape shape = conv_shape(graph, node);
  const DType dtype = graph.type(node.inputs[0]).dtype;
  std::string reason = refuse_common(shape, dtype);
  if (!reason.empty()) return reason;
  return refuse_unless_fast(
      [&] { return describe(ConvDesc(shape, images_per_task(shape.batch, kTasks), onednn_type(dtype))); });
}

}  // namespace

KernelDef conv2d_kernel() {
  const auto refused = [](const Graph& graph, const Node& node) {
    return refuse(graph, node, [](const ConvDesc& desc) { return desc.forward(); });
  };
  return {"conv2d", "cpu.conv2d", refused, make_kernel<ConvForward>};
}

KernelDef conv2d_grad_input_kernel() {
  const auto refused = [](const Graph& graph, const Node& node) {
    return refuse(graph, node, [](const ConvDesc& desc) { return desc.grad_input(); });
  };
  return {"conv2d_grad_input", "cpu.conv2d_grad_input", refused, make_kernel<ConvGradInput>};
}

}  // namespace lockstep::cpu
