// A convolution over a fixed number of images, in oneDNN's words.
//
// Images stay channels-last as the graph has them; filters take the layout that oneDNN likes best ("any") and
// are reordered from and to ours (see filter_layout.h).
#pragma once
#include "backend/cpu/onednn.h"
#include "ops/conv_shape.h"

namespace lockstep::cpu {

struct ConvDesc {
  dnnl::memory::desc images, filter, results;
  dnnl::memory::desc plain_filter;  // the graph's layout
  dnnl::memory::dims stride, dilation, pad_before, pad_after;

  // `filter_type` may differ from `type` for gradients summed in f32.
  ConvDesc(const ConvShape& shape, int64_t batch, dnnl::memory::data_type type,
           dnnl::memory::data_type filter_type);
  ConvDesc(const ConvShape& shape, int64_t batch, dnnl::memory::data_type type)
      : ConvDesc(shape, batch, type, type) {}

  dnnl::convolution_forward::primitive_desc forward() const;
  dnnl::convolution_backward_data::primitive_desc grad_input() const;
  dnnl::convolution_backward_weights::primitive_desc grad_filter() const;
};

dnnl::memory::data_type onednn_type(DType dtype);

// The largest number of images per task that gives at least `tasks` equal tasks, or one image each when there
// are fewer images than that. A function of the batch alone.
int64_t images_per_task(int64_t batch, int64_t tasks);

// Empty when oneDNN has more than its reference implementation for the primitive that describe() describes.
template <typename Describe>
std::string refuse_unless_fast(const Describe& describe) {
  onednn::use_one_thread();
  try {
    const std::string implementation = describe().impl_info_str();
    return implementation.starts_with("ref") ? "oneDNN has only its reference implementation for this shape"
                                             : "";
  } catch (const dnnl::error& error) {
    return fmt::format("oneDNN does not take this shape: {}", error.what());
  }
}

}  // namespace lockstep::cpu
