// The one list of CUDA kernels, by family: nodes/<family>.cc adds those of its ops. Several kernels may serve
// one op; the first that does not refuse is taken.
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/product_choices.h"

namespace lockstep::cuda {

// clang-format off
#define LOCKSTEP_CUDA_FAMILIES(X) \
  X(products) X(shapes) X(pointwise) X(reductions) X(losses) X(row_norms) X(channel_norms) X(convolutions) X(pools) \
  X(attention) X(rope) X(tables) X(random) X(optimizers) X(rounded_updates) \
  X(row_updates)
// clang-format on

#define DECLARE(name) void add_##name(KernelDefs& defs);
LOCKSTEP_CUDA_FAMILIES(DECLARE)
#undef DECLARE

namespace {

const KernelDefs& all_kernels() {
  static const KernelDefs kernels = [] {
    KernelDefs defs;
#define ADD(name) add_##name(defs);
    LOCKSTEP_CUDA_FAMILIES(ADD)
#undef ADD
    // Collectives run on the communicator, never as a kernel.
    defs.push_back({kAnyCollective, "cuda.collective",
                    [](const Graph&, const Node& node, Device&) {
                      return fmt::format("{} needs a communicator", node.op->name);
                    },
                    nullptr});
    return defs;
  }();
  return kernels;
}

bool serves(const KernelDef& def, const Node& node) {
  return def.op == node.op->name || (def.op == kAnyPointwise && node.op->traits.pointwise) ||
         (def.op == kAnyCollective && node.op->traits.collective);
}

}  // namespace

KernelChoice choose_kernel(const Graph& graph, const Node& node, Device& device) {
  KernelChoice choice;
  for (const KernelDef& def : all_kernels()) {
    if (!serves(def, node)) continue;
    std::string reason = def.refuse(graph, node, device);
    if (!reason.empty()) {
      choice.refusals.push_back({std::string(def.name), std::move(reason)});
      continue;
    }
    choice.kernel = def.make(graph, node, device);
    choice.name = def.name;
    break;
  }
  return choice;
}

// The last families of the list first: plans of libraries are made beside, while products are tried here.
void prepare_kernels(const Graph& graph, Device& device) {
  const KernelDefs& defs = all_kernels();
  for (size_t d = defs.size(); d-- > 0;) {
    if (defs[d].prepare == nullptr) continue;
    for (const Node& node : graph.nodes())
      if (serves(defs[d], node)) defs[d].prepare(graph, node, device);
  }
  device.product_choices().release_memory();
}

}  // namespace lockstep::cuda
