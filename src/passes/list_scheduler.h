// ListScheduler: makes an order of a graph's nodes one at a time, by what each would add to the live bytes.
//
// Lazy nodes (see passes/schedule.h) are never chosen themselves: they run just before the first chosen node
// that reads their results.
#pragma once
#include <vector>

#include "graph/graph.h"

namespace lockstep {

enum class ScheduleRule : uint8_t { kEager, kGreedy };

class ListScheduler {
 public:
  explicit ListScheduler(const Graph& graph);
  // Indices of all nodes, each after those it reads.
  std::vector<int32_t> order(ScheduleRule rule);

 private:
  void find_dependencies();
  void run(int32_t n);
  void execute(int32_t n);
  // Lazy nodes that n needs and that have not run, in program order, then n; until it is asked again.
  const std::vector<int32_t>& pulled(int32_t n);
  // Bytes taken minus bytes freed by running n and what it pulls.
  int64_t growth(int32_t n);
  // Whether n needs the end of a collective that has not run.
  bool waits(int32_t n);
  int32_t choose(ScheduleRule rule);

  const Node& node(int32_t n) const { return graph_.nodes()[static_cast<size_t>(n)]; }
  size_t buffer(Value value) const { return static_cast<size_t>(buffers_[static_cast<size_t>(value.id)].id); }

  const Graph& graph_;
  std::vector<Value> buffers_;
  std::vector<bool> lazy_;
  std::vector<int32_t> previous_done_;  // per end of a collective: the end before it in its group, or -1
  std::vector<std::vector<int32_t>> dependents_;  // per node that is not lazy: those that wait for it
  std::vector<int32_t> needs_, waits_for_;        // per node: how many it waits for, at first and still
  std::vector<bool> done_;
  std::vector<int32_t> readers_left_;  // per buffer; a buffer that must not be freed has one that never runs
  std::vector<bool> external_;         // per buffer: belongs to the caller
  std::vector<int32_t> ready_;         // sorted
  std::vector<int32_t> order_;
  std::vector<int32_t> pulled_;
  std::vector<bool> is_pulled_;  // per node; all false between calls
};

}  // namespace lockstep
