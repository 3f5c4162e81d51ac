#include "backend/cuda/device.h"

#include <dlfcn.h>

#include "backend/cuda/generated_kernels.h"
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/library/cublaslt.h"
#ifdef LOCKSTEP_CUDNN_FRONTEND
#include "backend/cuda/sdpa/sdpa_plan.h"
#endif
#include "base/error.h"

namespace lockstep::cuda {
namespace {

// The runtime is linked into the program and finds the driver's library by itself; asking for that library
// first tells a machine without a driver from one whose driver is of no use.
void require_driver() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr)
    throw UserError(
        "device cuda: no NVIDIA driver on this machine ({}); install one, or write device: cpu to train on "
        "the "
        "processor",
        dlerror());
  int has = 0;
  cudaDriverGetVersion(&has);
  if (has < CUDART_VERSION / 1000 * 1000)
    throw UserError(
        "device cuda: the NVIDIA driver serves CUDA {}.{}, this program needs {}.0; update the driver, or "
        "write "
        "device: cpu to train on the processor",
        has / 1000, has % 1000 / 10, CUDART_VERSION / 1000);
}

int checked_ordinal(int ordinal) {
  require_driver();
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess || devices == 0)
    throw UserError("device cuda: the driver shows no GPU ({}); look at nvidia-smi and CUDA_VISIBLE_DEVICES",
                    cudaGetErrorString(status));
  return ordinal % devices;
}

}  // namespace

Device::Device(int ordinal) : ordinal_(checked_ordinal(ordinal)) {
  require(cudaSetDevice(ordinal_), "choosing the device");
  require(cudaGetDeviceProperties(&properties_, ordinal_), "the device's properties");
  for (cudaStream_t& stream : streams_)
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  require(cudaStreamCreateWithFlags(&setup_, cudaStreamNonBlocking), "a stream");
}

// Errors of the end are nobody's: whoever waited for the work has been told.
Device::~Device() {
  cudaSetDevice(ordinal_);
  cudaDeviceSynchronize();
  reap(true);
  generated_.reset();
#ifdef LOCKSTEP_CUDNN_FRONTEND
  if (cudnn_ != nullptr) destroy_cudnn_handle(cudnn_);
#endif
  if (products_ != nullptr) cublaslt().destroy(products_);
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
  for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  cudaStreamDestroy(setup_);
}

void Device::use() const { require(cudaSetDevice(ordinal_), "choosing the device"); }

// All that may decide bits: instructions, how many multiprocessors products are cut for, and the libraries.
std::string Device::architecture() {
  std::string text = fmt::format("sm_{}{}x{}+cublasLt{}", properties_.major, properties_.minor,
                                 properties_.multiProcessorCount, cublaslt().version());
#ifdef LOCKSTEP_CUDNN_FRONTEND
  if (cudnn_refusal().empty()) text += fmt::format("+cudnn{}", cudnn().version);
#endif
  return text;
}

void* Device::allocate(int64_t bytes) {
  use();
  reap(false);
  void* memory = nullptr;
  cudaError_t status = cudaMalloc(&memory, static_cast<size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    reap(true);
    status = cudaMalloc(&memory, static_cast<size_t>(bytes));
  }
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw DeviceError("{}: {} bytes of memory were asked for, {} of {} are free", properties_.name, bytes,
                      free, total);
  }
  require(status, "cudaMalloc");
  require(cudaMemsetAsync(memory, 0, static_cast<size_t>(bytes), setup_), "zeroing memory");
  require(cudaStreamSynchronize(setup_), "zeroing memory");
  return memory;
}

void* Device::allocate_pinned(int64_t bytes) {
  use();
  reap(false);
  void* memory = nullptr;
  require(cudaHostAlloc(&memory, static_cast<size_t>(bytes), cudaHostAllocPortable), "pinned memory");
  std::fill_n(static_cast<char*>(memory), bytes, char{0});
  return memory;
}

void Device::free_later(void* memory, MemoryKind kind) {
  Leaving leaving{memory, kind, {}};
  cudaSetDevice(ordinal_);
  for (size_t i = 0; i < streams_.size(); ++i) {
    leaving.behind[i] = take_event();
    cudaEventRecord(leaving.behind[i], streams_[i]);
  }
  {
    const std::lock_guard lock(mutex_);
    leaving_.push_back(leaving);
  }
  reap(false);
}

void Device::reap(bool wait) {
  std::vector<Leaving> done;
  {
    const std::lock_guard lock(mutex_);
    while (!leaving_.empty()) {
      bool ready = true;
      for (cudaEvent_t event : leaving_.front().behind)
        ready = (wait ? cudaEventSynchronize(event) : cudaEventQuery(event)) != cudaErrorNotReady && ready;
      if (!ready) break;
      done.push_back(leaving_.front());
      leaving_.pop_front();
    }
  }
  for (const Leaving& leaving : done) {
    for (cudaEvent_t event : leaving.behind) give_event_back(event);
    if (leaving.kind == MemoryKind::kPinned)
      cudaFreeHost(leaving.memory);
    else
      cudaFree(leaving.memory);
  }
}

cudaEvent_t Device::take_event() {
  {
    const std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      cudaEvent_t event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  cudaEvent_t event = nullptr;
  require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  return event;
}

void Device::give_event_back(cudaEvent_t event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(event);
}

cublasLtHandle_t Device::products() {
  if (products_ == nullptr) {
    use();
    require(cublaslt().create(&products_), "a handle");
  }
  return products_;
}

const std::string& Device::cudnn_refusal() {
  if (asked_for_cudnn_) return cudnn_refusal_;
  asked_for_cudnn_ = true;
#ifdef LOCKSTEP_CUDNN_FRONTEND
  try {
    cudnn();
  } catch (const UserError& error) {
    cudnn_refusal_ = error.what();
  }
#else
  cudnn_refusal_ = "this program is built without cuDNN";
#endif
  return cudnn_refusal_;
}

cudnnContext* Device::cudnn_handle() {
#ifdef LOCKSTEP_CUDNN_FRONTEND
  if (cudnn_ == nullptr) {
    use();
    cudnn_ = make_cudnn_handle();
  }
#endif
  return cudnn_;
}

GeneratedKernels& Device::generated() {
  if (generated_ == nullptr) generated_ = std::make_unique<GeneratedKernels>(*this);
  return *generated_;
}

void copy_constants(void* to, const void* from, int64_t bytes) {
  require(cudaMemcpy(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice), "copying constants");
}

}  // namespace lockstep::cuda
