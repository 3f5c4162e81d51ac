// DeviceSharing: memory of a device that other processes of the host reach, and sums over it.
//
// A process exports a buffer as bytes; whoever opens these reads and copies the buffer like memory of its own
// device, be it the same one or another of this host. Nobody is told when somebody else is done with a
// buffer: those who share agree on that by other means (retire).
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/dtype.h"

namespace lockstep {

// A sum over buffers in the order of a tree: after the n-th source, the last two sums are added up merges[n]
// times.
struct SumSources {
  std::vector<const void*> addresses;
  std::vector<uint8_t> merges;
  bool rounds_nodes = true;  // of bf16: every node of the tree, or else the root alone
};

class DeviceSharing {
 public:
  virtual ~DeviceSharing() = default;
  // How workers that reach each other so are said to be joined.
  virtual std::string_view name() const = 0;
  // Device memory that can be exported; contents zero.
  virtual std::unique_ptr<Buffer> allocate(int64_t bytes) = 0;
  static constexpr size_t kExportBytes = 128;
  // At most so many bytes, of what allocate() gave.
  virtual std::vector<std::byte> export_memory(Buffer& buffer) = 0;
  // Throws DeviceError where this device does not reach the memory.
  virtual std::unique_ptr<Buffer> open(std::span<const std::byte> exported) = 0;

  virtual size_t most_sources() const = 0;
  // Puts a sum on the stream, element by element, of f32 or bf16. What it writes may be one of the sources.
  virtual void sum(StreamKind stream, DType dtype, const SumSources& sources, void* into, int64_t count) = 0;

  // Keeps memory until reap() finds that nobody has it open any more.
  void retire(std::shared_ptr<Buffer> memory, std::function<bool()> is_closed) {
    const std::lock_guard lock(mutex_);
    retired_.push_back({std::move(memory), std::move(is_closed)});
  }
  void reap() {
    const std::lock_guard lock(mutex_);
    std::erase_if(retired_, [](const Retired& one) { return one.is_closed(); });
  }

 private:
  struct Retired {
    std::shared_ptr<Buffer> memory;
    std::function<bool()> is_closed;
  };
  std::mutex mutex_;
  std::vector<Retired> retired_;
};

}  // namespace lockstep
