#include "backend/cuda/generated_kernels.h"

#include "backend/cuda/device.h"
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/library/nvrtc.h"
#include "base/error.h"

namespace lockstep::cuda {

GeneratedKernels::GeneratedKernels(const Device& device)
    : architecture_(fmt::format("sm_{}{}", device.properties().major, device.properties().minor)),
      compiler_(nvrtc_version()) {}

GeneratedKernels::~GeneratedKernels() {
  for (const auto& [source, loaded] : loaded_) cudaLibraryUnload(loaded.library);
}

std::string GeneratedKernels::code_of(const std::string& source) const {
  const std::string key = fmt::format("{} {}\n{}", compiler_, architecture_, source);
  std::string code = disk_.read(key, "cubin");
  if (!code.empty()) return code;
  code = compile_cuda(source, architecture_);
  disk_.write(key, "cubin", code);
  return code;
}

cudaKernel_t GeneratedKernels::get(const std::string& source) {
  const std::lock_guard lock(mutex_);
  const auto known = loaded_.find(source);
  if (known != loaded_.end()) return known->second.kernel;
  const std::string code = code_of(source);
  Loaded loaded{};
  require(cudaLibraryLoadData(&loaded.library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "loading a generated kernel");
  require(cudaLibraryGetKernel(&loaded.kernel, loaded.library, "kernel"), "a generated kernel");
  loaded_.emplace(source, loaded);
  return loaded.kernel;
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
