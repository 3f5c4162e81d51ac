// cuDNN's C++ front end is header-only and found at build time (LOCKSTEP_CUDNN_FRONTEND). It loads nothing
// but what cudnn_dlhandle names, and libcudart. It takes long to compile: only the files of this folder
// include it.
#include "backend/cuda/cudnn/library.h"

#include <cudnn_frontend.h>

#include "backend/cuda/library/shared_library.h"
#include "base/error.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace lockstep::cuda {

namespace fe = cudnn_frontend;

const Cudnn& cudnn() {
  static const Cudnn loaded = [] {
    const SharedLibrary library({"libcudnn.so.9", "libcudnn.so"}, "attention and convolutions on a GPU");
    fe::cudnn_dlhandle = library.handle();
    decltype(&cudnnGetVersion) version = nullptr;
    library.find("cudnnGetVersion", version);
    return Cudnn{static_cast<int64_t>(version()), library.path()};
  }();
  return loaded;
}

cudnnHandle_t make_cudnn_handle() {
  cudnn();
  cudnnHandle_t handle = nullptr;
  if (fe::detail::create_handle(&handle) != CUDNN_STATUS_SUCCESS) throw DeviceError("cuDNN: no handle");
  return handle;
}

void destroy_cudnn_handle(cudnnHandle_t handle) { fe::detail::destroy_handle(handle); }

void set_cudnn_stream(cudnnHandle_t handle, cudaStream_t stream) {
  if (fe::detail::set_stream(handle, stream) != CUDNN_STATUS_SUCCESS)
    throw DeviceError("cuDNN: setting a stream");
}

}  // namespace lockstep::cuda
