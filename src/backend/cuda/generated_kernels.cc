#include "backend/cuda/generated_kernels.h"

#include "backend/cuda/device.h"
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/library/nvrtc.h"
#include "base/error.h"

namespace lockstep::cuda {

GeneratedKernels::GeneratedKernels(Device& device) : device_(device), compiler_(nvrtc_version()) {}

GeneratedKernels::~GeneratedKernels() {
  for (cudaLibrary_t library : libraries_) cudaLibraryUnload(library);
}

std::string GeneratedKernels::code_of(const std::string& source) const {
  const cudaDeviceProp& gpu = device_.properties();
  const std::string architecture = fmt::format("sm_{}{}", gpu.major, gpu.minor);
  const std::string key = fmt::format("{} {}\n{}", compiler_, architecture, source);
  std::string code = disk_.read(key, "cubin");
  if (!code.empty()) return code;
  const PhaseTimes::Scope scope(device_.times(), "kernels compiled");
  code = compile_cuda(source, architecture);
  disk_.write(key, "cubin", code);
  return code;
}

cudaKernel_t GeneratedKernels::load(const std::string& source) {
  const std::string code = code_of(source);
  device_.use();
  const PhaseTimes::Scope scope(device_.times(), "kernels loaded");
  cudaLibrary_t library = nullptr;
  require(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "loading a generated kernel");
  {
    const std::lock_guard lock(mutex_);
    libraries_.push_back(library);
  }
  cudaKernel_t kernel = nullptr;
  require(cudaLibraryGetKernel(&kernel, library, "kernel"), "a generated kernel");
  return kernel;
}

GeneratedKernels::Ready GeneratedKernels::get(const std::string& source) {
  const std::lock_guard lock(mutex_);
  Ready& kernel = kernels_[source];
  if (!kernel.valid()) kernel = device_.side_work().start([this, source] { return load(source); });
  return kernel;
}

std::string refuse_generated(Device& device) {
  try {
    device.generated();
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace lockstep::cuda
