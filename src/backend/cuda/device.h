// Device: one GPU as kernels see it: its libraries, memory for constants, and the faults that kernels report.
#pragma once
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/faults.h"

struct cudnnContext;

namespace lockstep::cuda {

class GeneratedKernels;
class ProductChoices;

class Device {
 public:
  // UserError where there is no driver, it is too old, or there is no such device.
  explicit Device(int ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // What is called by this thread from now on means this device: CUDA's current device belongs to the thread.
  void use() const;
  const cudaDeviceProp& properties() const { return properties_; }
  std::string architecture();
  cudaStream_t stream(StreamKind kind) const { return streams_[static_cast<size_t>(kind)]; }

  // Zeroed; DeviceError says how much was free where it is not enough.
  void* allocate(int64_t bytes);
  void* allocate_pinned(int64_t bytes);
  // Given back to the system when all that is on the streams now has run.
  void free_later(void* memory, MemoryKind kind);

  // The most that was allocated at once.
  int64_t peak_bytes() const;
  int64_t free_bytes() const;  // what the device has left, whoever took the rest

  // Events without times, used again and again.
  cudaEvent_t take_event();
  void give_event_back(cudaEvent_t event);

  Faults& faults() { return faults_; }
  cublasLtHandle_t products();  // loads cuBLASLt
  ProductChoices& product_choices();
  cudnnContext* cudnn_handle();  // loads cuDNN; one stream at a time
  // Why cuDNN cannot be used, "" where it can.
  const std::string& cudnn_refusal();
  GeneratedKernels& generated();  // loads NVRTC

 private:
  struct Leaving {
    void* memory;
    MemoryKind kind;
    std::array<cudaEvent_t, kStreamKinds> behind;
  };
  void reap(bool wait);
  void count_allocated(void* memory, int64_t bytes);

  int ordinal_;
  cudaDeviceProp properties_{};
  std::array<cudaStream_t, kStreamKinds> streams_{};
  cudaStream_t setup_ = nullptr;  // zeroes new memory without waiting for the others
  mutable std::mutex mutex_;
  std::map<void*, int64_t> sizes_;  // of what is allocated on the device
  int64_t allocated_ = 0, peak_ = 0;
  std::vector<cudaEvent_t> events_;
  std::deque<Leaving> leaving_;
  Faults faults_;
  cublasLtHandle_t products_ = nullptr;
  std::unique_ptr<ProductChoices> product_choices_;
  cudnnContext* cudnn_ = nullptr;
  bool asked_for_cudnn_ = false;
  std::string cudnn_refusal_;
  std::unique_ptr<GeneratedKernels> generated_;
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
    copy(values.data(), bytes);
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
  void copy(const T* from, int64_t bytes);

  Device* device_ = nullptr;
  T* data_ = nullptr;
  size_t count_ = 0;
};

void copy_constants(void* to, const void* from, int64_t bytes);

template <typename T>
void DeviceArray<T>::copy(const T* from, int64_t bytes) {
  copy_constants(data_, from, bytes);
}

}  // namespace lockstep::cuda
