#include "backend/cuda/cudnn/convolution_plan.h"

#include <cudnn_frontend.h>

#include <unordered_map>

#include "base/error.h"

namespace lockstep::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

enum Uid : int64_t { kFirst = 1, kSecond, kResult };

void check(fe::error_t error, const char* what) {
  if (error.is_bad()) throw DeviceError("cuDNN: {}: {}", what, error.get_message());
}

fe::DataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::kF32: return fe::DataType_t::FLOAT;
    case DType::kBF16: return fe::DataType_t::BFLOAT16;
    default: return fe::DataType_t::HALF;
  }
}

// The library names axes in the order N C H W, whatever their order in memory, which is N H W C here.
struct Axes {
  std::vector<int64_t> extents, strides;
};
Axes channels_last(int64_t n, int64_t h, int64_t w, int64_t c) {
  return {{n, c, h, w}, {h * w * c, 1, w * c, c}};
}
Axes images(const ConvolutionShape& s) {
  return channels_last(s.batch, s.rows.input, s.columns.input, s.channels);
}
Axes results(const ConvolutionShape& s) {
  return channels_last(s.batch, s.rows.output, s.columns.output, s.outputs);
}
Axes filters(const ConvolutionShape& s) {
  return channels_last(s.outputs, s.rows.kernel, s.columns.kernel, s.channels / s.groups);
}

Tensor operand(fe::graph::Graph& graph, const Axes& axes, Uid uid, DType dtype) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name(uid == kFirst ? "first" : "second")
                          .set_uid(uid)
                          .set_dim(axes.extents)
                          .set_stride(axes.strides)
                          .set_data_type(data_type(dtype)));
}

// Padding behind the last pixel: as much as in front where that gives the same output (most engines want it
// so), else what the last window needs.
int64_t padding_behind(const ConvolutionShape::Axis& a) {
  const int64_t window = (a.kernel - 1) * a.dilation + 1;
  if ((a.input + 2 * a.before - window) / a.stride + 1 == a.output) return a.before;
  return std::max<int64_t>(0, (a.output - 1) * a.stride + window - a.input - a.before);
}

template <typename Options>
Options options_of(const ConvolutionShape& s) {
  return Options()
      .set_pre_padding({s.rows.before, s.columns.before})
      .set_post_padding({padding_behind(s.rows), padding_behind(s.columns)})
      .set_stride({s.rows.stride, s.columns.stride})
      .set_dilation({s.rows.dilation, s.columns.dilation});
}

}  // namespace

struct ConvolutionPlan::Graph {
  fe::graph::Graph graph;
};

ConvolutionPlan::ConvolutionPlan(cudnnHandle_t handle, const ConvolutionShape& s, Kind kind)
    : graph_(std::make_unique<Graph>()) {
  fe::graph::Graph& g = graph_->graph;
  g.set_io_data_type(data_type(s.dtype))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  Tensor result;
  Axes axes;
  DType dtype = s.dtype;
  if (kind == Kind::kForward) {
    const Tensor x = operand(g, images(s), kFirst, s.dtype),
                 filter = operand(g, filters(s), kSecond, s.dtype);
    result = g.conv_fprop(x, filter, options_of<fe::graph::Conv_fprop_attributes>(s));
    axes = results(s);
  } else if (kind == Kind::kGradInput) {
    const Tensor dy = operand(g, results(s), kFirst, s.dtype),
                 filter = operand(g, filters(s), kSecond, s.dtype);
    result = g.conv_dgrad(dy, filter, options_of<fe::graph::Conv_dgrad_attributes>(s));
    axes = images(s);
  } else {
    const Tensor x = operand(g, images(s), kFirst, s.dtype), dy = operand(g, results(s), kSecond, s.dtype);
    result = g.conv_wgrad(dy, x, options_of<fe::graph::Conv_wgrad_attributes>(s));
    axes = filters(s);
    dtype = s.filter_dtype;
  }
  result->set_output(true)
      .set_uid(kResult)
      .set_dim(axes.extents)
      .set_stride(axes.strides)
      .set_data_type(data_type(dtype));
  check(g.validate(), "a convolution");
  check(g.build_operation_graph(handle), "a convolution");
  check(g.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}), "plans for a convolution");
  std::vector<fe::NumericalNote_t> unwanted = {fe::NumericalNote_t::NONDETERMINISTIC};
  if (s.dtype == DType::kF32)
    for (const auto note : {fe::NumericalNote_t::DOWN_CONVERT_INPUTS,
                            fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION, fe::NumericalNote_t::WINOGRAD,
                            fe::NumericalNote_t::WINOGRAD_TILE_4x4, fe::NumericalNote_t::WINOGRAD_TILE_6x6,
                            fe::NumericalNote_t::WINOGRAD_TILE_13x13, fe::NumericalNote_t::FFT})
      unwanted.push_back(note);
  // Of f32, these are the engines that round operands to tf32.
  if (s.dtype == DType::kF32 && !s.tf32) unwanted.push_back(fe::NumericalNote_t::TENSOR_CORE);
  g.deselect_numeric_notes(unwanted);
  check(g.check_support(handle), "support for a convolution");
  check(g.build_plans(handle), "building a plan for a convolution");
}

ConvolutionPlan::ConvolutionPlan(cudnnHandle_t handle, const std::vector<uint8_t>& serialized)
    : graph_(std::make_unique<Graph>()) {
  // Without the trial run of the front end, which records on a stream that all others would have to wait for.
  constexpr bool kEnforcesPrecompiled = false, kTries = false;
  check(graph_->graph.deserialize(handle, serialized, kEnforcesPrecompiled, kTries),
        "reading a stored plan for a convolution");
}

ConvolutionPlan::~ConvolutionPlan() = default;
ConvolutionPlan::ConvolutionPlan(ConvolutionPlan&&) noexcept = default;

int64_t ConvolutionPlan::workspace_bytes() const {
  int64_t bytes = 0;
  check(graph_->graph.get_workspace_size(bytes), "the workspace of a convolution");
  return bytes;
}

std::vector<uint8_t> ConvolutionPlan::serialized() const {
  std::vector<uint8_t> data;
  check(graph_->graph.serialize(data), "storing a plan for a convolution");
  return data;
}

void ConvolutionPlan::run(cudnnHandle_t handle, const void* first, const void* second, void* result,
                          void* workspace) const {
  std::unordered_map<int64_t, void*> pack{
      {kFirst, const_cast<void*>(first)}, {kSecond, const_cast<void*>(second)}, {kResult, result}};
  check(graph_->graph.execute(handle, pack, workspace), "a convolution");
}

}  // namespace lockstep::cuda
