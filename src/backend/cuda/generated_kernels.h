// GeneratedKernels: kernels compiled at run time, each source once: kept in the process and on disk
// (disk_cache.h), so that a second run compiles nothing.
#pragma once
#include <cuda_runtime.h>

#include <map>
#include <mutex>
#include <string>

#include "backend/cuda/disk_cache.h"

namespace lockstep::cuda {

class Device;

class GeneratedKernels {
 public:
  explicit GeneratedKernels(const Device& device);  // UserError where NVRTC cannot be loaded
  ~GeneratedKernels();
  GeneratedKernels(const GeneratedKernels&) = delete;
  GeneratedKernels& operator=(const GeneratedKernels&) = delete;

  // The function `kernel` that the source defines as extern "C".
  cudaKernel_t get(const std::string& source);

 private:
  std::string code_of(const std::string& source) const;

  std::string architecture_, compiler_;
  DiskCache disk_;
  std::mutex mutex_;
  struct Loaded {
    cudaLibrary_t library;
    cudaKernel_t kernel;
  };
  std::map<std::string, Loaded> loaded_;  // by source
};

// Why no kernel can be generated, "" where some can.
std::string refuse_generated(Device& device);

}  // namespace lockstep::cuda
