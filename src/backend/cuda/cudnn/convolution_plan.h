// ConvolutionPlan: a convolution or one of its gradients through cuDNN's graph API, channels last, built once
// per shape. Only engines that give the same bits on every run are considered; for f32 only those that
// compute in f32, or round operands to tf32 where that is asked for.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/cudnn/library.h"
#include "backend/cuda/kernels/convolution.h"

namespace lockstep::cuda {

class ConvolutionPlan {
 public:
  enum class Kind : uint8_t { kForward, kGradInput, kGradFilter };

  // DeviceError where the library has no engine for it.
  ConvolutionPlan(cudnnHandle_t handle, const ConvolutionShape& shape, Kind kind);
  // From what serialized() gave, for the same shape and library.
  ConvolutionPlan(cudnnHandle_t handle, const std::vector<uint8_t>& serialized);
  ~ConvolutionPlan();
  ConvolutionPlan(ConvolutionPlan&&) noexcept;

  int64_t workspace_bytes() const;
  std::vector<uint8_t> serialized() const;

  // The operands in the order of the op: x, filter -> y; dy, filter -> dx; x, dy -> dfilter.
  void run(cudnnHandle_t handle, const void* first, const void* second, void* result, void* workspace) const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace lockstep::cuda
