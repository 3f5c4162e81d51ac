// Collectives run on the communicator of a distributed run, never as a kernel; here stands the reason why one
// cannot be planned for a single process.
#include "backend/cpu/kernel_def.h"

namespace lockstep::cpu {

KernelDef collective_kernel() {
  return {
      kAnyCollective, "cpu.collective",
      [](const Graph&, const Node& node) { return fmt::format("{} needs a communicator", node.op->name); },
      nullptr};
}

}  // namespace lockstep::cpu
