#include "passes/schedule.h"

#include <algorithm>
#include <numeric>

#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "passes/list_scheduler.h"
#include "passes/live_bytes.h"

namespace lockstep {
namespace {

constexpr std::string_view kProgram = "program";

Graph reordered(const Graph& graph, const std::vector<int32_t>& order) {
  Rewriter rewriter(graph);
  for (const int32_t n : order) rewriter.copy(graph.nodes()[static_cast<size_t>(n)]);
  return std::move(rewriter).finish();
}

}  // namespace

Graph schedule(const Graph& graph, const PassOptions& options) {
  struct Candidate {
    std::string_view name;
    std::vector<int32_t> order;
    int64_t peak;
  };
  ListScheduler scheduler(graph);
  std::vector<Candidate> candidates;
  const auto consider = [&](std::string_view name, std::vector<int32_t> order) {
    const int64_t peak = peak_live_bytes(graph, order);
    candidates.push_back({name, std::move(order), peak});
  };
  // The first of equals wins: eager makes gradients available earliest, program order is what the author
  // wrote.
  consider("eager", scheduler.order(ScheduleRule::kEager));
  // A transfer that hides behind other work holds its buffers longer: with transfers the order that hides
  // them is taken, whatever its bytes.
  const auto nodes = graph.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.op->is_start(); })) {
    std::vector<int32_t> program(nodes.size());
    std::iota(program.begin(), program.end(), 0);
    consider(kProgram, std::move(program));
    consider("greedy", scheduler.order(ScheduleRule::kGreedy));
  }
  size_t best = 0;
  for (size_t i = 1; i < candidates.size(); ++i)
    if (candidates[i].peak < candidates[best].peak) best = i;
  if (options.explain)
    for (size_t i = 0; i < candidates.size(); ++i)
      options.explain("schedule", fmt::format("{} order: {} bytes alive at most{}", candidates[i].name,
                                              candidates[i].peak, i == best ? " (taken)" : ""));
  return candidates[best].name == kProgram ? graph : reordered(graph, candidates[best].order);
}

}  // namespace lockstep
