#include "backend/cuda/device.h"

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/generated_kernels.h"
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/library/cublaslt.h"
#include "backend/cuda/product_choices.h"
#ifdef LOCKSTEP_CUDNN_FRONTEND
#include "backend/cuda/cudnn/library.h"
#endif
#include "base/does_not_fit.h"

namespace lockstep::cuda {
namespace {

int checked_ordinal(int ordinal) {
  const std::string reason = refuse_cuda();
  if (!reason.empty()) throw MissingDevice("device cuda: {}; device: cpu trains on the processor", reason);
  int devices = 0;
  require(cudaGetDeviceCount(&devices), "counting devices");
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
  product_choices_.reset();
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
  count_allocated(memory, bytes);
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
    if (leaving.kind == MemoryKind::kPinned) {
      cudaFreeHost(leaving.memory);
      continue;
    }
    cudaFree(leaving.memory);
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(leaving.memory);
    allocated_ -= found->second;
    sizes_.erase(found);
  }
}

void Device::count_allocated(void* memory, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  sizes_[memory] = bytes;
  allocated_ += bytes;
  peak_ = std::max(peak_, allocated_);
}

int64_t Device::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

int64_t Device::free_bytes() const {
  use();
  size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total), "asking for the free memory");
  return static_cast<int64_t>(free);
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

ProductChoices& Device::product_choices() {
  if (product_choices_ == nullptr)
    product_choices_ =
        std::make_unique<ProductChoices>(fmt::format("{} x{} cublasLt{}", properties_.name,
                                                     properties_.multiProcessorCount, cublaslt().version()),
                                         stream(StreamKind::kCompute));
  return *product_choices_;
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
