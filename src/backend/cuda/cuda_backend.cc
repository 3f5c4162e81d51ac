#include "backend/cuda/cuda_backend.h"

#include <cuda_runtime.h>

#include <array>
#include <mutex>

#include "backend/cuda/device.h"
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/launch.h"
#include "base/error.h"

namespace lockstep {
namespace cuda {
namespace {

// What is in the device's memory or pinned; the host's own memory comes from the CPU's allocator.
class CudaBuffer : public Buffer {
 public:
  CudaBuffer(std::shared_ptr<Device> device, int64_t bytes, MemoryKind kind)
      : device_(std::move(device)), bytes_(bytes), kind_(kind) {
    if (bytes == 0) return;
    data_ = kind == MemoryKind::kDevice ? device_->allocate(bytes) : device_->allocate_pinned(bytes);
  }
  ~CudaBuffer() override {
    if (data_ != nullptr) device_->free_later(data_, kind_);
  }
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;
  void* data() override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  std::shared_ptr<Device> device_;
  int64_t bytes_;
  MemoryKind kind_;
  void* data_ = nullptr;
};

class CudaEvent : public Event {
 public:
  CudaEvent(std::shared_ptr<Device> device, cudaStream_t stream)
      : device_(std::move(device)), event_(device_->take_event()) {
    require(cudaEventRecord(event_, stream), "recording an event");
  }
  ~CudaEvent() override { device_->give_event_back(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  void wait() override {
    require(cudaEventSynchronize(event_), "waiting for an event");
    device_->faults().check();
  }
  cudaEvent_t handle() const { return event_; }

 private:
  std::shared_ptr<Device> device_;
  cudaEvent_t event_;
};

class CudaStream : public Stream {
 public:
  CudaStream(std::shared_ptr<Device> device, StreamKind kind)
      : device_(std::move(device)), stream_(device_->stream(kind)) {}

  void enqueue(Kernel& kernel, const KernelArgs& args) override {
    device_->use();
    const std::lock_guard lock(*mutex_);  // a kernel keeps what it prepares for its launch
    KernelArgs here = args;
    here.queue = stream_;
    kernel.run(here);
  }
  void copy(void* to, const void* from, int64_t bytes) override {
    if (bytes == 0) return;
    device_->use();
    require(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream_), "a copy");
  }
  void zero(void* at, int64_t bytes) override {
    if (bytes == 0) return;
    device_->use();
    require(cudaMemsetAsync(at, 0, static_cast<size_t>(bytes), stream_), "zeroing memory");
  }
  EventPtr record() override {
    device_->use();
    return std::make_shared<CudaEvent>(device_, stream_);
  }
  void wait(const EventPtr& event) override {
    device_->use();
    require(cudaStreamWaitEvent(stream_, static_cast<CudaEvent&>(*event).handle(), 0),
            "waiting for an event");
  }
  void synchronize() override {
    device_->use();
    require(cudaStreamSynchronize(stream_), "waiting for the stream");
    device_->faults().check();
  }

 private:
  std::shared_ptr<Device> device_;
  cudaStream_t stream_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
};

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(const DeviceOptions& options)
      : host_(make_cpu_backend(options.threads)),
        device_(std::make_shared<Device>(options.local_rank)),
        streams_{CudaStream(device_, StreamKind::kCompute), CudaStream(device_, StreamKind::kCommunication),
                 CudaStream(device_, StreamKind::kCopy)} {
    device_->products();  // a run without it would end at its first product: better here
  }

  std::string name() const override { return "cuda"; }
  std::string architecture() const override { return device_->architecture(); }
  int64_t alignment() const override { return 256; }
  int64_t peak_bytes() const override { return device_->peak_bytes(); }
  int64_t free_bytes() const override { return device_->free_bytes(); }
  bool has_product_epilogues() const override { return true; }
  int host_threads() const override { return host_->host_threads(); }

  KernelChoice choose(const Graph& graph, const Node& node) override {
    device_->use();
    return choose_kernel(graph, node, *device_);
  }
  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryKind kind) override {
    if (kind == MemoryKind::kHost) return host_->allocate(bytes, kind);
    return std::make_unique<CudaBuffer>(device_, bytes, kind);
  }
  Stream& stream(StreamKind kind) override { return streams_[static_cast<size_t>(kind)]; }

 private:
  std::unique_ptr<Backend> host_;
  std::shared_ptr<Device> device_;
  std::array<CudaStream, kStreamKinds> streams_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> make_cuda_backend(const DeviceOptions& options) {
  return std::make_unique<cuda::CudaBackend>(options);
}

}  // namespace lockstep
