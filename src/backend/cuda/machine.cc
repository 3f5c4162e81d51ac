// Which GPUs and libraries this machine offers.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/disk_cache.h"
#include "backend/cuda/library/cublaslt.h"
#include "backend/cuda/library/nccl.h"
#include "backend/cuda/library/nvml.h"
#include "backend/cuda/library/nvrtc.h"
#ifdef LOCKSTEP_CUDNN_FRONTEND
#include "backend/cuda/cudnn/library.h"
#endif
#include "base/error.h"

namespace lockstep {
namespace {

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

int driver_version(void* driver) {
  const auto ask = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"));
  int version = 0;
  return ask != nullptr && ask(&version) == 0 ? version : 0;
}

// A library in its own words, or why it cannot be loaded.
template <typename Describe>
std::string library_line(const char* name, const char* use, const Describe& describe) {
  try {
    return fmt::format("{} {}: {}", name, describe(), use);
  } catch (const Error& error) {
    return fmt::format("{}: {}", name, error.what());
  }
}

}  // namespace

// The driver's library is asked before the runtime, which is linked into the program and takes a tenth of a
// second to begin: that distinguishes a machine without a driver from one whose driver is of no use.
std::string refuse_driver() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return fmt::format("no NVIDIA driver on this machine ({})", dlerror());
  const int has = driver_version(driver);
  if (has < CUDART_VERSION / 1000 * 1000)
    return fmt::format("the NVIDIA driver serves CUDA {}, this program needs {}.0: update the driver",
                       version_text(has), CUDART_VERSION / 1000);
  return "";
}

std::string refuse_cuda() {
  if (std::string reason = refuse_driver(); !reason.empty()) return reason;
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess || devices == 0)
    return fmt::format("the driver shows no GPU ({}): look at nvidia-smi and CUDA_VISIBLE_DEVICES",
                       cudaGetErrorString(status));
  return "";
}

std::vector<std::string> describe_cuda() {
  if (const std::string reason = refuse_cuda(); !reason.empty()) return {reason};
  std::vector<std::string> lines;
  int driver = 0, devices = 0;
  cudaDriverGetVersion(&driver);
  cudaGetDeviceCount(&devices);
  lines.push_back(fmt::format("driver for CUDA {}, program built with {}", version_text(driver),
                              version_text(CUDART_VERSION)));
  for (int i = 0; i < devices; ++i) {
    cudaDeviceProp device{};
    if (cudaGetDeviceProperties(&device, i) != cudaSuccess) continue;
    lines.push_back(fmt::format("device {}: {}, sm_{}{}, {} multiprocessors, {:.1f} GiB", i, device.name,
                                device.major, device.minor, device.multiProcessorCount,
                                static_cast<double>(device.totalGlobalMem) / (1 << 30)));
  }
  lines.push_back(library_line("cuBLASLt", "matrix products", [] {
    return fmt::format("{} ({})", cuda::cublaslt().version(), cuda::cublaslt().path);
  }));
  lines.push_back(library_line("NVRTC", "fused pointwise kernels, compiled once and kept", [] {
    return fmt::format("{} ({})", cuda::nvrtc_version(), cuda::nvrtc().path);
  }));
#ifdef LOCKSTEP_CUDNN_FRONTEND
  lines.push_back(library_line("cuDNN", "attention and convolutions; without it by our own kernels", [] {
    return fmt::format("{} ({})", cuda::cudnn().version, cuda::cudnn().path);
  }));
#else
  lines.emplace_back(
      "cuDNN: this program is built without it; attention and convolutions by our own kernels");
#endif
  lines.push_back(
      library_line("NCCL", "between GPUs of several hosts; without it through their hosts' memory",
                   [] { return fmt::format("{} ({})", cuda::nccl().version, cuda::nccl().path); }));
  lines.push_back(library_line("NVML", "how busy the device is, in metrics.jsonl and summary.json", [] {
    return fmt::format("of driver {} ({})", cuda::nvml_driver_version(), cuda::nvml_path());
  }));
  const cuda::DiskCache cache;
  lines.push_back(
      cache.folder().empty()
          ? "nothing is kept between runs: neither LOCKSTEP_CACHE, XDG_CACHE_HOME nor HOME is set"
          : fmt::format("kernels, plans and choices are kept in {}", (cache.folder() / "cuda").string()));
  return lines;
}

}  // namespace lockstep
