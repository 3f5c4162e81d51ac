#include "backend/cuda/cuda_backend.h"

#include <cuda_runtime.h>

#include <array>
#include <mutex>

#include "backend/cuda/cuda_messages.h"
#include "backend/cuda/cuda_sharing.h"
#include "backend/cuda/device.h"
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/kernels/random.h"
#include "backend/cuda/library/nvml.h"
#include "base/error.h"
#include "base/log.h"

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

class CudaRecording : public Recording {
 public:
  CudaRecording(std::shared_ptr<Device> device, StreamKind kind, cudaGraphExec_t work)
      : device_(std::move(device)), kind_(kind), work_(work) {}
  ~CudaRecording() override { cudaGraphExecDestroy(work_); }
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  void replay() override {
    device_->use();
    const std::lock_guard lock(device_->stream_mutex(kind_));
    require(cudaGraphLaunch(work_, device_->stream(kind_)), "a recorded step");
  }

 private:
  std::shared_ptr<Device> device_;
  StreamKind kind_;
  cudaGraphExec_t work_;
};

class CudaStream : public Stream {
 public:
  CudaStream(std::shared_ptr<Device> device, StreamKind kind) : device_(std::move(device)), kind_(kind) {}

  void enqueue(Kernel& kernel, const KernelArgs& args) override {
    const auto lock = put_here();  // a kernel keeps what it prepares for its launch
    KernelArgs here = args;
    here.queue = queue();
    kernel.run(here);
  }
  void copy(void* to, const void* from, int64_t bytes) override {
    if (bytes == 0) return;
    const auto lock = put_here();
    require(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, queue()), "a copy");
  }
  void zero(void* at, int64_t bytes) override {
    if (bytes == 0) return;
    const auto lock = put_here();
    require(cudaMemsetAsync(at, 0, static_cast<size_t>(bytes), queue()), "zeroing memory");
  }
  // A library that does something while its work is recorded that cannot be recorded spoils the recording,
  // and nothing else.
  std::unique_ptr<Recording> capture(const std::function<void()>& put) override {
    const auto lock = put_here();
    if (cudaStreamBeginCapture(queue(), cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
      cudaGetLastError();
      return nullptr;
    }
    bool complete = true;
    try {
      put();
    } catch (const DeviceError& error) {
      log_debug("a step is not recorded: {}", error.what());
      complete = false;
    }
    cudaGraph_t graph = nullptr;
    complete = cudaStreamEndCapture(queue(), &graph) == cudaSuccess && complete;
    cudaGraphExec_t work = nullptr;
    if (complete && cudaGraphInstantiate(&work, graph, 0) != cudaSuccess) work = nullptr;
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    if (work == nullptr) return nullptr;
    return std::make_unique<CudaRecording>(device_, kind_, work);
  }
  EventPtr record() override {
    const auto lock = put_here();
    return std::make_shared<CudaEvent>(device_, queue());
  }
  void wait(const EventPtr& event) override {
    const auto lock = put_here();
    require(cudaStreamWaitEvent(queue(), static_cast<CudaEvent&>(*event).handle(), 0),
            "waiting for an event");
  }
  // For an event, so that others may put work here meanwhile.
  void synchronize() override { record()->wait(); }

 private:
  std::unique_lock<std::recursive_mutex> put_here() const {
    device_->use();
    return std::unique_lock(device_->stream_mutex(kind_));
  }
  cudaStream_t queue() const { return device_->stream(kind_); }

  std::shared_ptr<Device> device_;
  StreamKind kind_;
};

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(const DeviceOptions& options)
      : host_(make_cpu_backend(options.threads)),
        device_(std::make_shared<Device>(options.local_rank, options.threads, options.tf32)),
        sharing_(make_cuda_sharing(device_)),
        messenger_(make_nccl_messenger(device_)),
        streams_{CudaStream(device_, StreamKind::kCompute), CudaStream(device_, StreamKind::kCommunication),
                 CudaStream(device_, StreamKind::kCopy)} {}

  std::string name() const override { return "cuda"; }
  std::string architecture() const override {
    // A run without them would end at its first product or fused operation: better here.
    device_->products();
    device_->generated();
    return device_->architecture();
  }
  int64_t alignment() const override { return 256; }
  int64_t peak_bytes() const override { return device_->peak_bytes(); }
  bool has_product_epilogues() const override { return true; }
  bool has_tf32() const override { return true; }
  int host_threads() const override { return host_->host_threads(); }

  int64_t available_bytes(int64_t workers) override { return device_->available_bytes(workers); }
  std::unique_ptr<DeviceMonitor> monitor() override { return nvml_monitor(device_->pci_address()); }
  std::vector<PhaseTime> start_times() const override { return device_->times().all(); }

  void prepare(const Graph& graph) override {
    device_->use();
    prepare_kernels(graph, *device_);
  }
  KernelChoice choose(const Graph& graph, const Node& node) override {
    device_->use();
    return choose_kernel(graph, node, *device_);
  }
  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryKind kind) override {
    if (kind == MemoryKind::kHost) return host_->allocate(bytes, kind);
    return std::make_unique<CudaBuffer>(device_, bytes, kind);
  }
  bool draw(const RandomFill& fill, DType dtype, int64_t first, void* to, int64_t count) override {
    if (!is_floating(dtype)) return false;
    device_->use();
    fill_with_draws(device_->stream(StreamKind::kCompute), fill, dtype, first, to, count);
    return true;
  }
  std::shared_ptr<void> pin(void* memory, int64_t bytes) override {
    if (bytes == 0) return nullptr;
    device_->use();
    const cudaError_t status = cudaHostRegister(memory, static_cast<size_t>(bytes), cudaHostRegisterPortable);
    if (status == cudaSuccess) return {memory, [](void* pinned) { cudaHostUnregister(pinned); }};
    cudaGetLastError();
    log_debug("{} bytes of the host are not pinned: {}", bytes, cudaGetErrorString(status));
    return nullptr;
  }
  DeviceSharing* sharing() override { return sharing_.get(); }
  DeviceMessenger* messenger() override { return messenger_.get(); }
  Stream& stream(StreamKind kind) override { return streams_[static_cast<size_t>(kind)]; }

 private:
  std::unique_ptr<Backend> host_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<DeviceSharing> sharing_;
  std::unique_ptr<DeviceMessenger> messenger_;
  std::array<CudaStream, kStreamKinds> streams_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> make_cuda_backend(const DeviceOptions& options) {
  return std::make_unique<cuda::CudaBackend>(options);
}

}  // namespace lockstep
