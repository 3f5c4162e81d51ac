#include "device/trapping_gpu.h"

#include <array>
#include <atomic>

#include "backend/cuda/cuda_backend.h"

namespace lockstep::testing {
namespace {

// No allocation of the device begins so low.
void* const kNowhere = reinterpret_cast<void*>(uintptr_t{1} << 20);

class Trap : public Kernel {
 public:
  Trap(std::unique_ptr<Kernel> inner, std::atomic<int64_t>& left) : inner_(std::move(inner)), left_(left) {}
  void run(const KernelArgs& args) override {
    if (--left_ != 0) return inner_->run(args);
    const std::array<void*, 1> nowhere{kNowhere};
    KernelArgs wrong = args;
    wrong.outputs = nowhere;
    inner_->run(wrong);
  }
  int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  KernelMemory memory() const override { return inner_->memory(); }

 private:
  std::unique_ptr<Kernel> inner_;
  std::atomic<int64_t>& left_;
};

// Records nothing: what is replayed runs no kernel's host side, where the trap lies.
class PlainStream : public Stream {
 public:
  explicit PlainStream(Stream& inner) : inner_(inner) {}
  void enqueue(Kernel& kernel, const KernelArgs& args) override { inner_.enqueue(kernel, args); }
  void copy(void* to, const void* from, int64_t bytes) override { inner_.copy(to, from, bytes); }
  void zero(void* at, int64_t bytes) override { inner_.zero(at, bytes); }
  EventPtr record() override { return inner_.record(); }
  void wait(const EventPtr& event) override { inner_.wait(event); }
  void synchronize() override { inner_.synchronize(); }

 private:
  Stream& inner_;
};

class TrappingGpu : public Backend {
 public:
  explicit TrappingGpu(int64_t fails_at)
      : left_(fails_at),
        gpu_(make_cuda_backend({})),
        streams_{PlainStream(gpu_->stream(StreamKind::kCompute)),
                 PlainStream(gpu_->stream(StreamKind::kCommunication)),
                 PlainStream(gpu_->stream(StreamKind::kCopy))} {}

  std::string name() const override { return gpu_->name(); }
  std::string architecture() const override { return gpu_->architecture(); }
  int64_t alignment() const override { return gpu_->alignment(); }
  int64_t available_bytes(int64_t workers) override { return gpu_->available_bytes(workers); }
  bool has_product_epilogues() const override { return gpu_->has_product_epilogues(); }
  int host_threads() const override { return gpu_->host_threads(); }
  KernelChoice choose(const Graph& graph, const Node& node) override {
    KernelChoice choice = gpu_->choose(graph, node);
    if (choice.name == "cuda.matmul" && node.outputs.size() == 1)
      choice.kernel = std::make_unique<Trap>(std::move(choice.kernel), left_);
    return choice;
  }
  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryKind kind) override {
    return gpu_->allocate(bytes, kind);
  }
  Stream& stream(StreamKind kind) override { return streams_[static_cast<size_t>(kind)]; }

 private:
  std::atomic<int64_t> left_;
  std::unique_ptr<Backend> gpu_;
  std::array<PlainStream, kStreamKinds> streams_;
};

}  // namespace

std::unique_ptr<Backend> make_trapping_gpu(int64_t fails_at) {
  return std::make_unique<TrappingGpu>(fails_at);
}

}  // namespace lockstep::testing
