// Backend: one device. Memory, streams and kernels come from here, and the runtime speaks to devices only
// through this.
//
// A device works asynchronously: kernels and copies are put on a stream and run later, in the order of that
// stream; an event marks a point of it, which the host or another stream can wait for. On the CPU everything
// has run by the time it is put there, so an event is complete when it is made.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/kernel.h"
#include "base/choices.h"
#include "base/device_use.h"
#include "base/phase_times.h"
#include "base/philox.h"

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

// Work that was recorded once, to be put on its stream again and again in one call: where each kernel takes
// a few microseconds, handing them over one by one takes longer than they run.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;
};

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
  // Calls `put`, which may put kernels, copies and zeroing here and nothing elsewhere: none of it runs, all
  // of it is recorded. Null where this stream records nothing, or not that; then nothing has happened.
  virtual std::unique_ptr<Recording> capture(const std::function<void()>& /*put*/) { return nullptr; }
  virtual EventPtr record() = 0;
  // What comes after runs when the event, of any stream of this device, is complete.
  virtual void wait(const EventPtr& event) = 0;
  // Returns when all that was put on the stream has run; throws as Event::wait.
  virtual void synchronize() = 0;
};

enum class StreamKind : uint8_t { kCompute, kCommunication, kCopy };
inline constexpr int kStreamKinds = 3;

class DeviceMessenger;
class DeviceSharing;

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
  // A worker's part of what was free on the device when it was opened, where this many workers divide the
  // devices of the host; 0 where it works in the host's memory.
  virtual int64_t available_bytes(int64_t /*workers*/) { return 0; }
  // Whether its products take along what follows them (passes/product_epilogues.h).
  virtual bool has_product_epilogues() const { return false; }
  // Whether it can compute f32 products with operands of 10 bits.
  virtual bool has_tf32() const { return false; }
  // How many threads may work on the host for it.
  virtual int host_threads() const { return 1; }

  // Begins what kernels of the graph's nodes need and takes long, so that it goes on side by side.
  virtual void prepare(const Graph&) {}
  virtual KernelChoice choose(const Graph& graph, const Node& node) = 0;
  // Contents zero. A buffer may go while work on the compute stream still needs it: its memory stays until
  // then. Pinned memory of a backend that works in the host's is like any other.
  virtual std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryKind kind) = 0;
  std::unique_ptr<Buffer> allocate(int64_t bytes) { return allocate(bytes, memory()); }
  // While the result is kept, the device copies from and to this memory of the host, whole pages, as fast as
  // it can; null where that makes no difference.
  virtual std::shared_ptr<void> pin(void* /*memory*/, int64_t /*bytes*/) { return nullptr; }
  // How other processes of the host reach this device's memory; null where they do not.
  virtual DeviceSharing* sharing() { return nullptr; }
  // How this device sends to others, also of other hosts; null where it does not.
  virtual DeviceMessenger* messenger() { return nullptr; }
  virtual Stream& stream(StreamKind kind) = 0;
  Stream& compute() { return stream(StreamKind::kCompute); }

  // For all that is not in the step's way: behind what was put on the compute stream so far, and done on
  // return.
  virtual void upload(void* device, const void* host, int64_t bytes);
  virtual void copy(void* to, const void* from, int64_t bytes);  // both on the device
  virtual void download(void* host, const void* device, int64_t bytes);
  // Puts the draws of elements [first, first + count) into memory of the device, on the compute stream.
  // False: they are drawn on the host.
  virtual bool draw(const RandomFill&, DType, int64_t /*first*/, void* /*to*/, int64_t /*count*/) {
    return false;
  }

  // Where it spent time so far before work could begin, on all threads: loading libraries, building plans.
  virtual std::vector<PhaseTime> start_times() const { return {}; }
  // Who says how busy it is; null where nobody does. Any thread may ask, and it may take long.
  virtual std::unique_ptr<DeviceMonitor> monitor() { return nullptr; }
};

std::unique_ptr<Backend> make_cpu_backend(int threads);
std::unique_ptr<Backend> make_null_backend();

struct DeviceOptions {
  DeviceKind kind = DeviceKind::kAuto;
  int threads = 1;     // of the host, for kernels that run there
  int local_rank = 0;  // among the workers of this host, who divide its devices
  bool tf32 = false;   // products and convolutions of f32 round their operands, where the device can
};
// The one place that knows which devices there are. Throws UserError for one that this program or machine
// lacks. kAuto: a GPU where this program can use one, else the processor.
std::unique_ptr<Backend> make_backend(const DeviceOptions& options);

}  // namespace lockstep
