// Backend: where memory, streams and kernels come from. The runtime speaks to devices only through this.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "backend/kernel.h"

namespace lockstep {

// A block of device memory. data() is an address of the device; only upload and download may be used to look
// inside.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual void* data() = 0;
  virtual int64_t bytes() const = 0;
};

// A queue of kernels that run in order. On a device that runs at once, enqueue runs and synchronize has
// nothing to do.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void enqueue(Kernel& kernel, const KernelArgs& args) = 0;
  virtual void synchronize() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  // The instruction-set class or GPU architecture: part of a run's identity, since rounding may depend on it.
  virtual std::string architecture() const = 0;
  virtual int64_t alignment() const { return 64; }
  // Whether its kernels work in memory of the host, which processes can share.
  virtual bool in_host_memory() const { return false; }
  // How many threads may work on the host for it.
  virtual int host_threads() const { return 1; }

  virtual KernelChoice choose(const Graph& graph, const Node& node) = 0;
  virtual std::unique_ptr<Buffer> allocate(int64_t bytes) = 0;  // contents zero
  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual void upload(void* device, const void* host, int64_t bytes) = 0;
  virtual void zero(void* device, int64_t bytes) = 0;
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;  // both on the device
  virtual void download(void* host, const void* device, int64_t bytes) = 0;
};

std::unique_ptr<Backend> make_cpu_backend(int threads);
std::unique_ptr<Backend> make_null_backend();

}  // namespace lockstep
