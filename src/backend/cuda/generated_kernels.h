// GeneratedKernels: kernels compiled at run time, each source once: kept in the process and in a folder on
// disk
// ($LOCKSTEP_CACHE, else $XDG_CACHE_HOME/lockstep, else ~/.cache/lockstep), so that a second run compiles
// nothing.
//
// A stored kernel is named by the hash of everything that makes it: source, compiler and architecture. One
// that cannot be read or was cut short is compiled again.
#pragma once
#include <cuda_runtime.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <string>

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
  std::filesystem::path folder_;  // empty: nothing is kept on disk
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
