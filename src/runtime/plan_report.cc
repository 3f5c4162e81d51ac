// How a plan presents itself to people: memory by category, and who runs what.
#include <algorithm>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/text.h"
#include "runtime/plan.h"

namespace lockstep {
namespace {

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

}  // namespace

std::string memory_table(const Plan& plan) {
  const MemoryReport& memory = plan.memory;
  std::string out = fmt::format("memory of {} (MiB)\n", plan.graph.name());
  for (int c = 0; c < kMemoryCategories; ++c)
    out += fmt::format("  {:<20}{:>12.2f}\n", name_of(static_cast<MemoryCategory>(c)),
                       mib(memory.at_peak[static_cast<size_t>(c)]));
  const int64_t packed = memory.arena_peak + memory.region_bytes;
  out += fmt::format("  {:<20}{:>12.2f}   at step {} of {}\n", "planned peak", mib(memory.planned_peak()),
                     memory.peak_step, plan.steps.size());
  const double bound = mib(memory.packed_lower_bound);
  out += fmt::format("  {:<20}{:>12.2f}   lower bound {:.2f} (+{:.1f} %), placed by {}\n", "packed",
                     mib(packed), bound, bound > 0 ? (mib(packed) / bound - 1.0) * 100.0 : 0.0, memory.order);
  return out;
}

std::string kernel_table(const Plan& plan) {
  std::string out;
  for (const PlanStep& step : plan.steps) {
    for (const Replacement& replaced : plan.replaced) {
      if (replaced.first_node != step.node) continue;
      out += fmt::format("lowered to {} nodes             {}\n", replaced.end_node - replaced.first_node,
                         replaced.node);
      for (const Refusal& refusal : replaced.refusals)
        out += fmt::format("    {} refused: {}\n", refusal.kernel, refusal.reason);
    }
    const Node& node = plan.graph.nodes()[static_cast<size_t>(step.node)];
    out += fmt::format("{:<28} {}\n", step.kernel, to_text(plan.graph, node));
    for (const Refusal& refusal : step.refusals)
      out += fmt::format("    {} refused: {}\n", refusal.kernel, refusal.reason);
  }
  return out;
}

}  // namespace lockstep
