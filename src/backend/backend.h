// Backend: one device. Memory, streams and kernels come from here, and the runtime speaks to devices only
// through this.
//
// A device works asynchronously: kernels and copies are put on a stream and run later, in the order of that
// stream; an event marks a point of it, which the host or another stream can wait for. On the CPU everything
// has run by the time it is put there, so an event is complete when it is made.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "backend/kernel.h"
#include "base/choices.h"

namespace lockstep {

enum class MemoryKind : uint8_t {
  kHost,    // of the process; where workers of a host can share it
  kPinned,  // of the process too, at an address that the device copies from and to while the host goes on
  kDevice,  // only the device reads and writes it
};
std::string_view name_of(MemoryKind kind);

class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual void* data() = 0;
  virtual int64_t bytes() const = 0;
};

// A point of a stream.
class Event {
 public:
  virtual ~Event() = default;
  // Returns when all that was on the stream before it has run; throws DeviceError where some of it failed.
  virtual void wait() = 0;
};
using EventPtr = std::shared_ptr<Event>;

// A queue of work that runs in order. Memory that is given to it stays as it is until the work has run: see
// record() and synchronize(). Several threads may put work on one.
class Stream {
 public:
  virtual ~Stream() = default;
  // The spans of `args` are read at once.
  virtual void enqueue(Kernel& kernel, const KernelArgs& args) = 0;
  // Between any two kinds of memory; of the host's, pinned.
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  virtual void zero(void* at, int64_t bytes) = 0;
  virtual EventPtr record() = 0;
  // What comes after runs when the event, of any stream of this device, is complete.
  virtual void wait(const EventPtr& event) = 0;
  // Returns when all that was put on the stream has run; throws as Event::wait.
  virtual void synchronize() = 0;
};

enum class StreamKind : uint8_t { kCompute, kCommunication, kCopy };
inline constexpr int kStreamKinds = 3;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  // The instruction-set class or GPU architecture: part of a run's identity, since rounding may depend on it.
  virtual std::string architecture() const = 0;
  virtual int64_t alignment() const { return 64; }
  // What its kernels work in: kHost or kDevice.
  virtual MemoryKind memory() const { return MemoryKind::kDevice; }
  // The most that was allocated on the device at once; 0 where it works in the host's memory.
  virtual int64_t peak_bytes() const { return 0; }
  // What may still be allocated on it; 0 where it works in the host's memory, or does not say.
  virtual int64_t free_bytes() const { return 0; }
  // Whether its products take along what follows them (passes/product_epilogues.h).
  virtual bool has_product_epilogues() const { return false; }
  // How many threads may work on the host for it.
  virtual int host_threads() const { return 1; }

  virtual KernelChoice choose(const Graph& graph, const Node& node) = 0;
  // Contents zero. A buffer may go while work on the compute stream still needs it: its memory stays until
  // then. Pinned memory of a backend that works in the host's is like any other.
  virtual std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryKind kind) = 0;
  std::unique_ptr<Buffer> allocate(int64_t bytes) { return allocate(bytes, memory()); }
  virtual Stream& stream(StreamKind kind) = 0;
  Stream& compute() { return stream(StreamKind::kCompute); }

  // For all that is not in the step's way: behind what was put on the compute stream so far, and done on
  // return.
  virtual void upload(void* device, const void* host, int64_t bytes);
  virtual void copy(void* to, const void* from, int64_t bytes);  // both on the device
  virtual void download(void* host, const void* device, int64_t bytes);
};

std::unique_ptr<Backend> make_cpu_backend(int threads);
std::unique_ptr<Backend> make_null_backend();

struct DeviceOptions {
  DeviceKind kind = DeviceKind::kAuto;
  int threads = 1;     // of the host, for kernels that run there
  int local_rank = 0;  // among the workers of this host, who divide its devices
};
// The one place that knows which devices there are. Throws UserError for one that this program or machine
// lacks. kAuto: a GPU where this program can use one, else the processor.
std::unique_ptr<Backend> make_backend(const DeviceOptions& options);

}  // namespace lockstep
