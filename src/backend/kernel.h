// Kernel: one node made ready to run on a device: shapes, partition and constants are fixed, only addresses
// are open.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lockstep {

struct KernelArgs {
  std::span<void* const> inputs;   // one address per operand of the node
  std::span<void* const> outputs;  // one per result; may equal an input's where the op allows in-place
  void* workspace = nullptr;       // workspace_bytes() bytes, contents undefined
  void* queue = nullptr;           // the device library's name of the stream it runs on, where there is one
};

// Host memory that kernels hold for as long as they exist, beside what the plan gives them.
struct KernelMemory {
  int64_t own = 0;     // tables, descriptions, generated code
  int64_t shared = 0;  // of a library beneath, held once for all kernels: the largest counts

  int64_t bytes() const { return own + shared; }
  KernelMemory& operator+=(const KernelMemory& other) {
    own += other.own;
    shared = std::max(shared, other.shared);
    return *this;
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelArgs& args) = 0;
  virtual int64_t workspace_bytes() const { return 0; }
  virtual KernelMemory memory() const { return {}; }
};

struct Refusal {
  std::string kernel;
  std::string reason;
};

// What a backend answers when asked who runs a node: the kernel, or none; and who refused and why.
struct KernelChoice {
  std::unique_ptr<Kernel> kernel;
  std::string name;
  std::vector<Refusal> refusals;
};

}  // namespace lockstep
