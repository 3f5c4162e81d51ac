// GeneratedKernels: kernels compiled at run time, each source once, by threads of their own: kept in the
// process and on disk (disk_cache.h), so that a second run compiles nothing.
#pragma once
#include <cuda_runtime.h>

#include <future>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "backend/cuda/disk_cache.h"

namespace lockstep::cuda {

class Device;

class GeneratedKernels {
 public:
  using Ready = std::shared_future<cudaKernel_t>;

  explicit GeneratedKernels(Device& device);  // UserError where NVRTC cannot be loaded
  // When no thread makes kernels any more.
  ~GeneratedKernels();
  GeneratedKernels(const GeneratedKernels&) = delete;
  GeneratedKernels& operator=(const GeneratedKernels&) = delete;

  // The function `kernel` that the source defines as extern "C": begins to compile it, where that was not
  // done.
  Ready get(const std::string& source);

 private:
  cudaKernel_t load(const std::string& source);
  std::string code_of(const std::string& source) const;

  Device& device_;
  std::string compiler_;
  DiskCache disk_;
  std::mutex mutex_;
  std::map<std::string, Ready> kernels_;  // by source
  std::vector<cudaLibrary_t> libraries_;
};

// Why no kernel can be generated, "" where some can.
std::string refuse_generated(Device& device);

}  // namespace lockstep::cuda
