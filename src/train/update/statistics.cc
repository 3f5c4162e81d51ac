#include "train/update/statistics.h"

#include "base/error.h"
#include "ops/builder.h"
#include "ops/registry.h"

namespace lockstep {

Graph build_statistics_update(const FlatLayout& layout, int64_t microbatches, double momentum) {
  LOCKSTEP_CHECK(microbatches >= 1 && momentum > 0 && momentum <= 1, "{} microbatches, momentum {}",
                 microbatches, momentum);
  double kept = 1;  // multiplied out: the same bits on every machine, which pow does not promise
  for (int64_t m = 0; m < microbatches; ++m) kept *= 1 - momentum;
  Graph graph(all_ops(), "statistics");
  Builder b(graph);
  const Type flat{DType::kF32, {layout.statistics_numel()}};
  const Value running = graph.add_input("statistics", flat, Role::kState);
  const Value sums = graph.add_input("sums", flat, Role::kGrad);
  const Value mean = b.div(sums, b.constant_like(static_cast<double>(microbatches), sums));
  graph.add_update(running, b.add(running, b.scale(b.sub(mean, running), 1 - kept)));
  return graph;
}

}  // namespace lockstep
