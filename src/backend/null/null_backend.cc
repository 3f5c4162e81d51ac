// The null backend: accepts every op, runs nothing, owns no memory. Plans and simulates any layout without
// hardware.
#include "backend/backend.h"
#include "base/error.h"
#include "graph/op_def.h"

namespace lockstep {
namespace {

class NullKernel : public Kernel {
 public:
  void run(const KernelArgs&) override {}
};

class NullBuffer : public Buffer {
 public:
  explicit NullBuffer(int64_t bytes) : bytes_(bytes) {}
  void* data() override { return nullptr; }
  int64_t bytes() const override { return bytes_; }

 private:
  int64_t bytes_;
};

class NullEvent : public Event {
 public:
  void wait() override {}
};

class NullStream : public Stream {
 public:
  void enqueue(Kernel&, const KernelArgs&) override {}
  void copy(void*, const void*, int64_t) override {}
  void zero(void*, int64_t) override {}
  EventPtr record() override { return std::make_shared<NullEvent>(); }
  void wait(const EventPtr&) override {}
  void synchronize() override {}
};

class NullBackend : public Backend {
 public:
  std::string name() const override { return "null"; }
  std::string architecture() const override { return "null"; }
  KernelChoice choose(const Graph&, const Node& node) override {
    return {std::make_unique<NullKernel>(), "null." + std::string(node.op->name), {}};
  }
  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryKind) override {
    return std::make_unique<NullBuffer>(bytes);
  }
  Stream& stream(StreamKind) override { return stream_; }
  void download(void*, const void*, int64_t) override {
    throw UserError("the null backend runs nothing and has no results; use --backend cpu");
  }

 private:
  NullStream stream_;
};

}  // namespace

std::unique_ptr<Backend> make_null_backend() { return std::make_unique<NullBackend>(); }

}  // namespace lockstep
