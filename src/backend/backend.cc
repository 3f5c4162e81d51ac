#include "backend/backend.h"

#include "backend/cuda/cuda_backend.h"
#include "base/error.h"

namespace lockstep {

std::string_view name_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kHost: return "host";
    case MemoryKind::kPinned: return "pinned";
    case MemoryKind::kDevice: return "device";
  }
  return "";
}

void Backend::upload(void* device, const void* host, int64_t bytes) { copy(device, host, bytes); }

void Backend::download(void* host, const void* device, int64_t bytes) { copy(host, device, bytes); }

void Backend::copy(void* to, const void* from, int64_t bytes) {
  compute().copy(to, from, bytes);
  compute().synchronize();
}

std::unique_ptr<Backend> make_backend(const DeviceOptions& options) {
  switch (options.kind) {
    case DeviceKind::kAuto:
      if (refuse_cuda().empty()) return make_cuda_backend(options);
      return make_cpu_backend(options.threads);
    case DeviceKind::kCpu: return make_cpu_backend(options.threads);
    case DeviceKind::kCuda: return make_cuda_backend(options);
  }
  throw InternalError("make_backend: unknown kind {}", static_cast<int>(options.kind));
}

}  // namespace lockstep
