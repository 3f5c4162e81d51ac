// Device: one GPU as kernels see it: its libraries, memory for constants, and the faults that kernels report.
//
// Making one takes no time: the driver is asked for a context, and the libraries are loaded, by threads of
// their own, while the job's data is opened and its model built. Whoever needs one of them waits for it here,
// and hears here why it is missing.
#pragma once
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/faults.h"
#include "backend/cuda/side_work.h"

struct cudnnContext;

namespace lockstep::cuda {

class GeneratedKernels;
class KeptPlans;
class ProductChoices;

class Device {
 public:
  // MissingDevice where there is no driver, or one that is too old; where there is no such device, whatever
  // uses it first throws that. `threads` may work on the host beside the caller.
  Device(int ordinal, int threads, bool tf32 = false);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // What is called by this thread from now on means this device: CUDA's current device belongs to the thread.
  void use() const;
  int ordinal() const { return ordinal_; }
  const cudaDeviceProp& properties() const {
    wait_until_open();
    return properties_;
  }
  std::string architecture();
  std::string pci_address() const;
  cudaStream_t stream(StreamKind kind) const {
    wait_until_open();
    return streams_[static_cast<size_t>(kind)];
  }

  // Held by whoever puts something on a stream: while one records what it puts there, nobody else may.
  std::recursive_mutex& stream_mutex(StreamKind kind) { return stream_mutexes_[static_cast<size_t>(kind)]; }

  // Zeroed; DeviceError says how much was free where it is not enough.
  void* allocate(int64_t bytes);
  void* allocate_pinned(int64_t bytes);
  // Given back to the system when all that is on the streams now has run.
  void free_later(void* memory, MemoryKind kind);

  // To new memory that nothing on a stream uses yet; done on return.
  void copy_constants(void* to, const void* from, int64_t bytes) const;

  // The most that was allocated at once.
  int64_t peak_bytes() const;
  // For one of the workers who divide this host's devices: of what was free at first.
  int64_t available_bytes(int64_t workers) const;

  // Events without times, used again and again.
  cudaEvent_t take_event();
  void give_event_back(cudaEvent_t event);

  Faults& faults() { return faults_; }
  cublasLtHandle_t products();  // loads cuBLASLt
  ProductChoices& product_choices();
  // A handle that nobody else has until it is given back. Loads cuDNN.
  cudnnContext* take_cudnn_handle();
  void give_cudnn_handle_back(cudnnContext* handle);
  // Why cuDNN cannot be used, "" where it can.
  const std::string& cudnn_refusal();
  KeptPlans& kept_plans() { return *kept_plans_; }
  GeneratedKernels& generated();  // loads NVRTC

  // Whether products and convolutions of f32 may round their operands to tf32.
  bool tf32() const { return tf32_; }
  SideWork& side_work() { return side_work_; }
  // Of all threads: what it took until the first work could begin.
  PhaseTimes& times() { return times_; }

 private:
  struct Leaving {
    void* memory;
    MemoryKind kind;
    std::array<cudaEvent_t, kStreamKinds> behind;
  };
  void open();
  void wait_until_open() const {
    if (!is_open_.load(std::memory_order_acquire)) opened_.get();
  }
  void load_libraries();
  cudaEvent_t find_event();  // null where the device gives none
  void reap(bool wait);
  void count_allocated(void* memory, int64_t bytes);

  int ordinal_, devices_ = 1;
  bool tf32_;
  int64_t free_at_first_ = 0;
  PhaseTimes times_;
  cudaDeviceProp properties_{};
  std::array<cudaStream_t, kStreamKinds> streams_{};
  std::array<std::recursive_mutex, kStreamKinds> stream_mutexes_;
  cudaStream_t setup_ = nullptr;  // zeroes new memory without waiting for the others
  mutable std::mutex mutex_;
  std::map<void*, int64_t> sizes_;  // of what is allocated on the device
  int64_t allocated_ = 0, peak_ = 0;
  std::vector<cudaEvent_t> events_;
  std::deque<Leaving> leaving_;
  Faults faults_;

  std::mutex products_mutex_, cudnn_mutex_, handles_mutex_, generated_mutex_;
  cublasLtHandle_t products_ = nullptr;
  std::unique_ptr<ProductChoices> product_choices_;
  std::vector<cudnnContext*> cudnn_handles_, idle_cudnn_handles_;
  bool asked_for_cudnn_ = false;
  std::string cudnn_refusal_;
  std::unique_ptr<GeneratedKernels> generated_;
  std::shared_ptr<KeptPlans> kept_plans_;  // none in a program without cuDNN

  SideWork side_work_;
  std::atomic<bool> is_open_ = false;
  std::shared_future<void> opened_;
  std::vector<std::thread> loading_;  // the context and the libraries, side by side
};

// Constants of a kernel, on the device for as long as it lives.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(Device& device, std::span<const T> values) : device_(&device), count_(values.size()) {
    if (values.empty()) return;
    device.use();
    const auto bytes = static_cast<int64_t>(values.size_bytes());
    data_ = static_cast<T*>(device.allocate(bytes));
    device.copy_constants(data_, values.data(), bytes);
  }
  ~DeviceArray() {
    if (data_ != nullptr) device_->free_later(data_, MemoryKind::kDevice);
  }
  DeviceArray(DeviceArray&& other) noexcept { *this = std::move(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  const T* data() const { return data_; }
  int64_t size() const { return static_cast<int64_t>(count_); }

 private:
  Device* device_ = nullptr;
  T* data_ = nullptr;
  size_t count_ = 0;
};

}  // namespace lockstep::cuda
