// SdpaPlan: attention through cuDNN's graph API, forward or deterministic backward, built once per shape.
//
// The backward plan asks for the deterministic algorithm, which keeps dS in a workspace of B H T S 2 bytes
// instead of adding dQ with atomics; the plan of a step must count it. Each sequence is independent, so a
// batch may be cut into slices that share a smaller workspace without changing a bit.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/cudnn/library.h"
#include "backend/cuda/kernels/attention.h"

namespace lockstep::cuda {

class SdpaPlan {
 public:
  enum class Direction : uint8_t { kForward, kBackward };

  // Why cuDNN should not be asked: a mask it does not take here, or a version with a known wrong result. ""
  // where none.
  static std::string refusal(const AttentionShape& shape);

  SdpaPlan(cudnnHandle_t handle, const AttentionShape& shape, Direction direction, bool deterministic = true);
  // From what serialized() gave, for the same shape and library.
  SdpaPlan(cudnnHandle_t handle, const std::vector<uint8_t>& serialized);
  ~SdpaPlan();
  SdpaPlan(SdpaPlan&&) noexcept;

  int64_t workspace_bytes() const;
  std::vector<uint8_t> serialized() const;
  std::string plan_name() const;

  void forward(cudnnHandle_t handle, const void* q, const void* k, const void* v, void* out, float* lse,
               void* workspace) const;
  void backward(cudnnHandle_t handle, const void* dout, const void* q, const void* k, const void* v,
                const void* out, const float* lse, void* dq, void* dk, void* dv, void* workspace) const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace lockstep::cuda
