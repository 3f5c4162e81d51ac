#include "backend/cpu/conv_desc.h"

#include "base/error.h"

namespace lockstep::cpu {
namespace {

using Tag = dnnl::memory::format_tag;

dnnl::memory::dims filter_dims(const ConvShape& s) {
  const WindowAxis& rows = s.window.rows;
  const WindowAxis& columns = s.window.columns;
  if (s.groups == 1) return {s.outputs, s.channels, rows.kernel, columns.kernel};
  return {s.groups, s.outputs_per_group(), s.channels_per_group(), rows.kernel, columns.kernel};
}

}  // namespace

ConvDesc::ConvDesc(const ConvShape& s, int64_t batch, dnnl::memory::data_type type,
                   dnnl::memory::data_type filter_type) {
  const WindowAxis& rows = s.window.rows;
  const WindowAxis& columns = s.window.columns;
  images = {{batch, s.channels, rows.input, columns.input}, type, Tag::nhwc};
  results = {{batch, s.outputs, rows.output, columns.output}, type, Tag::nhwc};
  filter = {filter_dims(s), filter_type, Tag::any};
  plain_filter = {filter_dims(s), filter_type, s.groups == 1 ? Tag::ohwi : Tag::gohwi};
  stride = {rows.stride, columns.stride};
  dilation = {rows.dilation - 1, columns.dilation - 1};
  pad_before = {rows.before, columns.before};
  // What the windows really reach; the part of the padding that no window touches is not oneDNN's business.
  const auto reached = [](const WindowAxis& axis) {
    return axis.position(axis.output - 1, axis.kernel - 1) - (axis.input - 1);
  };
  pad_after = {reached(rows), reached(columns)};
}

dnnl::convolution_forward::primitive_desc ConvDesc::forward() const {
  return {{dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, images, filter, results,
           stride, dilation, pad_before, pad_after},
          onednn::caller_scratch(),
          onednn::engine()};
}

dnnl::convolution_backward_data::primitive_desc ConvDesc::grad_input() const {
  return {
      {dnnl::algorithm::convolution_direct, images, filter, results, stride, dilation, pad_before, pad_after},
      onednn::caller_scratch(),
      onednn::engine(),
      forward()};
}

dnnl::convolution_backward_weights::primitive_desc ConvDesc::grad_filter() const {
  ConvDesc hint = *this;
  hint.filter.data.data_type = images.data.data_type;
  return {
      {dnnl::algorithm::convolution_direct, images, filter, results, stride, dilation, pad_before, pad_after},
      onednn::caller_scratch(),
      onednn::engine(),
      hint.forward()};
}

dnnl::memory::data_type onednn_type(DType dtype) {
  if (dtype == DType::kF32) return dnnl::memory::data_type::f32;
  if (dtype == DType::kBF16) return dnnl::memory::data_type::bf16;
  throw InternalError("no convolution in {}", name_of(dtype));
}

int64_t images_per_task(int64_t batch, int64_t tasks) {
  for (int64_t images = batch / tasks; images > 1; --images)
    if (batch % images == 0) return images;
  return 1;
}

}  // namespace lockstep::cpu
