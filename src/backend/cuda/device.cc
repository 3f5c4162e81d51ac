#include "backend/cuda/device.h"

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/generated_kernels.h"
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/library/cublaslt.h"
#include "backend/cuda/library/nvrtc.h"
#include "backend/cuda/product_choices.h"
#ifdef LOCKSTEP_CUDNN_FRONTEND
#include "backend/cuda/cudnn/library.h"
#include "backend/cuda/nodes/kept_plans.h"
#endif
#include "base/does_not_fit.h"
#include "base/log.h"

namespace lockstep::cuda {

namespace {

// Of the device's memory, for each worker: its context, the code of kernels, and what libraries keep beside a
// plan's buffers.
constexpr int64_t kCodeBytes = int64_t{512} << 20;

[[noreturn]] void throw_missing(const std::string& reason) {
  throw MissingDevice("device cuda: {}; device: cpu trains on the processor", reason);
}

}  // namespace

Device::Device(int ordinal, int threads, bool tf32) : ordinal_(ordinal), tf32_(tf32), side_work_(threads) {
#ifdef LOCKSTEP_CUDNN_FRONTEND
  kept_plans_ = std::make_shared<KeptPlans>();
#endif
  if (const std::string reason = refuse_driver(); !reason.empty()) throw_missing(reason);
  std::packaged_task<void()> opening([this] { open(); });
  opened_ = opening.get_future().share();
  loading_.emplace_back(std::move(opening));
  load_libraries();
}

void Device::open() {
  const PhaseTimes::Scope scope(times_, "context");
  if (const std::string reason = refuse_cuda(); !reason.empty()) throw_missing(reason);
  require(cudaGetDeviceCount(&devices_), "counting devices");
  ordinal_ %= devices_;
  require(cudaSetDevice(ordinal_), "choosing the device");
  require(cudaGetDeviceProperties(&properties_, ordinal_), "the device's properties");
  for (cudaStream_t& stream : streams_)
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  require(cudaStreamCreateWithFlags(&setup_, cudaStreamNonBlocking), "a stream");
  size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total), "asking for free memory");
  free_at_first_ = static_cast<int64_t>(free);
  is_open_.store(true, std::memory_order_release);
}

// What cannot be loaded is told to whoever needs it, who tries again.
void Device::load_libraries() {
  const auto load = [this](const auto& body) {
    loading_.emplace_back([body] {
      try {
        body();
      } catch (const Error&) {
      }
    });
  };
  load([this] { products(); });
  load([this] {
    if (cudnn_refusal().empty()) give_cudnn_handle_back(take_cudnn_handle());
  });
  load([this] { generated(); });
}

// Errors of the end are nobody's: whoever waited for the work has been told. A device that has failed takes
// nothing back, and the process ends with it.
Device::~Device() {
  for (std::thread& thread : loading_) thread.join();
  side_work_.stop();
  if (!is_open_) return;
  cudaSetDevice(ordinal_);
  if (cudaDeviceSynchronize() != cudaSuccess) return;
  reap(true);
  generated_.reset();
  product_choices_.reset();
  kept_plans_.reset();
#ifdef LOCKSTEP_CUDNN_FRONTEND
  for (cudnnContext* handle : cudnn_handles_) destroy_cudnn_handle(handle);
#endif
  if (products_ != nullptr) cublaslt().destroy(products_);
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
  for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  cudaStreamDestroy(setup_);
}

void Device::use() const {
  wait_until_open();
  require(cudaSetDevice(ordinal_), "choosing the device");
}

// All that may decide bits: instructions, how many multiprocessors products are cut for, and the libraries.
std::string Device::architecture() {
  const cudaDeviceProp& gpu = properties();
  std::string text = fmt::format("sm_{}{}x{}+cublasLt{}", gpu.major, gpu.minor, gpu.multiProcessorCount,
                                 cublaslt().version());
#ifdef LOCKSTEP_CUDNN_FRONTEND
  if (cudnn_refusal().empty()) text += fmt::format("+cudnn{}", cudnn().version);
#endif
  return text;
}

std::string Device::pci_address() const {
  const cudaDeviceProp& gpu = properties();
  return fmt::format("{:08X}:{:02X}:{:02X}.0", gpu.pciDomainID, gpu.pciBusID, gpu.pciDeviceID);
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

void Device::copy_constants(void* to, const void* from, int64_t bytes) const {
  use();
  require(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, setup_),
          "copying constants");
  require(cudaStreamSynchronize(setup_), "copying constants");
}

// Never throws, for it is called while something else is told: a device that has failed gives no events, and
// what is on its streams will not run.
void Device::free_later(void* memory, MemoryKind kind) {
  Leaving leaving{memory, kind, {}};
  cudaSetDevice(ordinal_);
  for (size_t i = 0; i < streams_.size(); ++i) {
    const std::lock_guard lock(stream_mutexes_[i]);
    leaving.behind[i] = find_event();
    if (leaving.behind[i] != nullptr) cudaEventRecord(leaving.behind[i], streams_[i]);
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
        if (event != nullptr)
          ready = (wait ? cudaEventSynchronize(event) : cudaEventQuery(event)) != cudaErrorNotReady && ready;
      if (!ready) break;
      done.push_back(leaving_.front());
      leaving_.pop_front();
    }
  }
  for (const Leaving& leaving : done) {
    for (cudaEvent_t event : leaving.behind)
      if (event != nullptr) give_event_back(event);
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

int64_t Device::available_bytes(int64_t workers) const {
  wait_until_open();
  const int64_t sharing = std::max<int64_t>(1, (workers + devices_ - 1) / devices_);
  return std::max<int64_t>(0, free_at_first_ - sharing * kCodeBytes) / sharing;
}

cudaEvent_t Device::find_event() {
  {
    const std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      cudaEvent_t event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  cudaEvent_t event = nullptr;
  return cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess ? event : nullptr;
}

cudaEvent_t Device::take_event() {
  use();
  cudaEvent_t event = find_event();
  if (event == nullptr) require(cudaGetLastError(), "an event");
  return event;
}

void Device::give_event_back(cudaEvent_t event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(event);
}

cublasLtHandle_t Device::products() {
  const std::lock_guard lock(products_mutex_);
  if (products_ != nullptr) return products_;
  times_.timed("cuBLASLt library", [] { return cublaslt().create; });
  use();
  const PhaseTimes::Scope scope(times_, "cuBLASLt handle");
  require(cublaslt().create(&products_), "a handle");
  return products_;
}

ProductChoices& Device::product_choices() {
  const cudaDeviceProp& gpu = properties();
  const std::lock_guard lock(products_mutex_);
  if (product_choices_ == nullptr)
    product_choices_ = std::make_unique<ProductChoices>(
        fmt::format("{} x{} cublasLt{}", gpu.name, gpu.multiProcessorCount, cublaslt().version()),
        stream(StreamKind::kCompute), times_);
  return *product_choices_;
}

const std::string& Device::cudnn_refusal() {
  const std::lock_guard lock(cudnn_mutex_);
  if (asked_for_cudnn_) return cudnn_refusal_;
#ifdef LOCKSTEP_CUDNN_FRONTEND
  const PhaseTimes::Scope scope(times_, "cuDNN library");
  try {
    cudnn();
  } catch (const UserError& error) {
    cudnn_refusal_ = error.what();
    log_warn("{}; without it attention and convolutions run by our own kernels, which are slower",
             cudnn_refusal_);
  }
#else
  cudnn_refusal_ = "this program is built without cuDNN";
#endif
  asked_for_cudnn_ = true;
  return cudnn_refusal_;
}

cudnnContext* Device::take_cudnn_handle() {
  use();
  {
    const std::lock_guard lock(handles_mutex_);
    if (!idle_cudnn_handles_.empty()) {
      cudnnContext* const handle = idle_cudnn_handles_.back();
      idle_cudnn_handles_.pop_back();
      return handle;
    }
  }
#ifdef LOCKSTEP_CUDNN_FRONTEND
  const PhaseTimes::Scope scope(times_, "cuDNN handle");
  cudnnContext* const handle = make_cudnn_handle();
  const std::lock_guard lock(handles_mutex_);
  cudnn_handles_.push_back(handle);
  return handle;
#else
  return nullptr;
#endif
}

void Device::give_cudnn_handle_back(cudnnContext* handle) {
  const std::lock_guard lock(handles_mutex_);
  idle_cudnn_handles_.push_back(handle);
}

GeneratedKernels& Device::generated() {
  const std::lock_guard lock(generated_mutex_);
  if (generated_ != nullptr) return *generated_;
  times_.timed("NVRTC library", [] { return nvrtc().version; });
  generated_ = std::make_unique<GeneratedKernels>(*this);
  return *generated_;
}

}  // namespace lockstep::cuda
