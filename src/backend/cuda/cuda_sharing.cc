#include "backend/cuda/cuda_sharing.h"

#include <cuda_runtime.h>
#include <unistd.h>

#include <bit>
#include <cstring>

#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/kernels/tree_sum.h"
#include "base/error.h"

namespace lockstep::cuda {
namespace {

// A handle is of a whole allocation, and smaller ones share theirs with others.
constexpr int64_t kGranule = 2 << 20;

struct Exported {
  cudaIpcMemHandle_t handle;
  int64_t process;
  void* address;
  int64_t bytes;
};
static_assert(sizeof(Exported) <= DeviceSharing::kExportBytes);

class OwnBuffer : public Buffer {
 public:
  OwnBuffer(std::shared_ptr<Device> device, int64_t bytes)
      : device_(std::move(device)),
        bytes_(bytes),
        data_(device_->allocate(std::max<int64_t>(1, (bytes + kGranule - 1) / kGranule) * kGranule)) {}
  ~OwnBuffer() override { device_->free_later(data_, MemoryKind::kDevice); }
  OwnBuffer(const OwnBuffer&) = delete;
  OwnBuffer& operator=(const OwnBuffer&) = delete;
  void* data() override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  std::shared_ptr<Device> device_;
  int64_t bytes_;
  void* data_;
};

// A process cannot open its own handles, and need not.
class OpenedBuffer : public Buffer {
 public:
  OpenedBuffer(std::shared_ptr<Device> device, const Exported& exported)
      : device_(std::move(device)), bytes_(exported.bytes), own_(exported.process == getpid()) {
    if (own_) {
      data_ = exported.address;
      return;
    }
    device_->use();
    const cudaError_t status = cudaIpcOpenMemHandle(&data_, exported.handle, cudaIpcMemLazyEnablePeerAccess);
    if (status == cudaSuccess) return;
    cudaGetLastError();
    throw DeviceError("memory of process {} cannot be opened: {}", exported.process,
                      cudaGetErrorString(status));
  }
  ~OpenedBuffer() override {
    if (own_) return;
    cudaSetDevice(device_->ordinal());
    cudaIpcCloseMemHandle(data_);
  }
  OpenedBuffer(const OpenedBuffer&) = delete;
  OpenedBuffer& operator=(const OpenedBuffer&) = delete;
  void* data() override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  std::shared_ptr<Device> device_;
  int64_t bytes_;
  bool own_;
  void* data_ = nullptr;
};

// Whether sources are the leaves of a tree over them, for which there is a kernel with fewer moves.
bool are_leaves(const std::vector<uint8_t>& merges) {
  size_t left = merges.size() - 1;
  for (size_t s = 0; s + 1 < merges.size(); ++s) {
    if (merges[s] != std::countr_one(s)) return false;
    left -= merges[s];
  }
  return merges.back() == left;
}

class CudaSharing : public DeviceSharing {
 public:
  explicit CudaSharing(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  std::string_view name() const override { return "cuda_ipc"; }
  std::unique_ptr<Buffer> allocate(int64_t bytes) override {
    return std::make_unique<OwnBuffer>(device_, bytes);
  }
  std::vector<std::byte> export_memory(Buffer& buffer) override {
    device_->use();
    Exported exported{{}, getpid(), buffer.data(), buffer.bytes()};
    const cudaError_t status = cudaIpcGetMemHandle(&exported.handle, buffer.data());
    if (status != cudaSuccess) {
      cudaGetLastError();
      throw DeviceError("memory cannot be shared with other processes: {}", cudaGetErrorString(status));
    }
    std::vector<std::byte> bytes(sizeof exported);
    std::memcpy(bytes.data(), &exported, sizeof exported);
    return bytes;
  }
  std::unique_ptr<Buffer> open(std::span<const std::byte> bytes) override {
    Exported exported;
    std::memcpy(&exported, bytes.data(), sizeof exported);
    return std::make_unique<OpenedBuffer>(device_, exported);
  }

  size_t most_sources() const override { return kMostTreeSources; }
  void sum(StreamKind stream, DType dtype, const SumSources& sources, void* into, int64_t count) override {
    LOCKSTEP_CHECK(!sources.addresses.empty() && sources.addresses.size() <= most_sources() &&
                       sources.merges.size() == sources.addresses.size(),
                   "a sum of {} sources", sources.addresses.size());
    TreeSources tree{{}, static_cast<int>(sources.addresses.size())};
    std::ranges::copy(sources.addresses, tree.address);
    if (!are_leaves(sources.merges)) std::ranges::copy(sources.merges, tree.merges);
    device_->use();
    tree_sum(device_->stream(stream), dtype, tree, dtype != DType::kF32 && sources.rounds_nodes, into, count);
  }

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace

std::unique_ptr<DeviceSharing> make_cuda_sharing(std::shared_ptr<Device> device) {
  return std::make_unique<CudaSharing>(std::move(device));
}

}  // namespace lockstep::cuda
