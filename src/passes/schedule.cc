#include "passes/schedule.h"

#include <algorithm>

#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "passes/list_scheduler.h"
#include "passes/live_bytes.h"

namespace lockstep {
namespace {

Graph reordered(const Graph& graph, const std::vector<int32_t>& order) {
  Rewriter rewriter(graph);
  for (const int32_t n : order) rewriter.copy(graph.nodes()[static_cast<size_t>(n)]);
  return std::move(rewriter).finish();
}

}  // namespace

Graph schedule(const Graph& graph, const PassOptions& options) {
  struct Candidate {
    std::string_view name;
    Graph graph;
    int64_t peak;
  };
  ListScheduler scheduler(graph);
  std::vector<Candidate> candidates;
  const auto consider = [&](std::string_view name, Graph candidate) {
    const int64_t peak = peak_live_bytes(candidate);
    candidates.push_back({name, std::move(candidate), peak});
  };
  // The first of equals wins: eager makes gradients available earliest, program order is what the author
  // wrote.
  consider("eager", reordered(graph, scheduler.order(ScheduleRule::kEager)));
  // A transfer that hides behind other work holds its buffers longer: with transfers the order that hides
  // them is taken, whatever its bytes.
  const auto nodes = graph.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.op->is_start(); })) {
    consider("program", graph);
    consider("greedy", reordered(graph, scheduler.order(ScheduleRule::kGreedy)));
  }
  size_t best = 0;
  for (size_t i = 1; i < candidates.size(); ++i)
    if (candidates[i].peak < candidates[best].peak) best = i;
  if (options.explain)
    for (size_t i = 0; i < candidates.size(); ++i)
      options.explain("schedule", fmt::format("{} order: {} bytes alive at most{}", candidates[i].name,
                                              candidates[i].peak, i == best ? " (taken)" : ""));
  return std::move(candidates[best].graph);
}

}  // namespace lockstep
