// conv2d and its gradients by plain kernels: for what cuDNN does not take, and to check it against.
//
// Images are [N, H, W, C], filters [O, KH, KW, C / groups]. Every sum has one order: taps in row-major order,
// then channels; the filter's gradient adds fixed parts of the output pixels in order.
#pragma once
#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

struct ConvolutionShape {
  int64_t batch = 0, channels = 0, outputs = 0, groups = 1;
  struct Axis {
    int64_t input = 0, output = 0, kernel = 1, stride = 1, dilation = 1, before = 0;
  } rows, columns;
  DType dtype = DType::kF32;
  DType filter_dtype = DType::kF32;  // of a filter's gradient
  bool tf32 = false;                 // f32 operands may be rounded to tf32; these kernels never do
};

void convolution(cudaStream_t stream, const ConvolutionShape& shape, const void* x, const void* filter,
                 void* y);
void convolution_grad_input(cudaStream_t stream, const ConvolutionShape& shape, const void* dy,
                            const void* filter, void* dx);
int64_t convolution_grad_filter_workspace(const ConvolutionShape& shape);
void convolution_grad_filter(cudaStream_t stream, const ConvolutionShape& shape, const void* x,
                             const void* dy, void* dfilter, void* workspace);

}  // namespace lockstep::cuda
