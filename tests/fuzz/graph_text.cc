#include "fuzz/graph_text.h"

#include "base/error.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "ops/registry.h"
#include "passes/pipeline.h"

namespace lockstep::testing {
namespace {

void check_passes(const Graph& graph, const PassOptions& options) {
  try {
    const Graph result = run_passes(graph, options);
    LOCKSTEP_CHECK(result.outputs().size() >= graph.outputs().size(), "an output was lost");
  } catch (const UserError&) {
    // No loss to differentiate, or an op without a gradient on the way to it.
  }
}

}  // namespace

bool check_graph_text(std::string_view text) {
  std::string printed;
  try {
    const Graph graph = parse_graph(text, all_ops());
    verify(graph, Stage::kScheduled);
    printed = to_text(graph);
  } catch (const UserError&) {
    return false;
  }
  // Outside of the try: what was printed must parse.
  const Graph graph = parse_graph(printed, all_ops());
  LOCKSTEP_CHECK(to_text(graph) == printed, "prints as {} and then as {}", printed, to_text(graph));
  PassOptions inference;
  inference.disabled = {"autodiff"};
  check_passes(graph, inference);
  for (const Recompute policy : {Recompute::kNone, Recompute::kFused, Recompute::kCheap, Recompute::kBlock}) {
    PassOptions training;
    training.recompute = policy;
    training.accumulate_gradients = policy == Recompute::kCheap;
    check_passes(graph, training);
  }
  return true;
}

}  // namespace lockstep::testing
