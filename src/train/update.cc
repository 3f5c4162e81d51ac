#include "train/update.h"

#include <algorithm>

#include "ops/builder.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

// Ranges of the flat buffer whose parameters are not decayed, neighbours joined.
std::vector<int64_t> no_decay_ranges(const FlatLayout& layout, const std::vector<ParamInit>& params) {
  std::vector<int64_t> ranges;
  for (const FlatEntry& entry : layout.entries()) {
    const auto init = std::find_if(params.begin(), params.end(), [&](const ParamInit& p) { return p.name == entry.name; });
    if (init == params.end() || init->decay) continue;
    const int64_t end = entry.offset + entry.shape.numel();
    if (!ranges.empty() && ranges.back() == entry.offset)
      ranges.back() = end;
    else
      ranges.insert(ranges.end(), {entry.offset, end});
  }
  return ranges;
}

}  // namespace

Graph build_adamw_update(const FlatLayout& layout, const std::vector<ParamInit>& params,
                         const OptimizerSettings& settings) {
  Graph graph(all_ops(), "update");
  Builder b(graph);
  const Type flat{DType::kF32, {layout.numel()}};
  const Value p = graph.add_input("params", flat, Role::kParam);
  const Value g = graph.add_input("grads", flat, Role::kGrad);
  const Value m = graph.add_input("moment1", flat, Role::kState);
  const Value v = graph.add_input("moment2", flat, Role::kState);
  const Value count = b.input("count", {DType::kI64, {}});
  const Value lr = b.input("lr", {DType::kF32, {}});
  const Value step = b.input("step", {DType::kI64, {}});

  const Value one = b.constant(1.0, {DType::kF32, {}});
  const Value inverse_count = b.div(one, b.cast(count, DType::kF32));
  const Value norm = b.mul(b.op("global_norm", {g}), inverse_count);
  Value scale = inverse_count;
  if (settings.clip_norm > 0) {
    // torch.nn.utils.clip_grad_norm_: max_norm / (norm + 1e-6), never above 1.
    const Value limit = b.constant(settings.clip_norm, {DType::kF32, {}});
    scale = b.mul(scale, b.op("minimum", {one, b.div(limit, b.shift(norm, 1e-6))}));
  }
  const auto updated = b.op_all("adamw", {p, g, m, v, scale, lr, step},
                                {{"beta1", settings.beta1},
                                 {"beta2", settings.beta2},
                                 {"epsilon", settings.epsilon},
                                 {"weight_decay", settings.weight_decay},
                                 {"no_decay", no_decay_ranges(layout, params)}});
  graph.add_output(norm);
  graph.add_update(p, updated[0]);
  graph.add_update(m, updated[1]);
  graph.add_update(v, updated[2]);
  return graph;
}

}  // namespace lockstep
