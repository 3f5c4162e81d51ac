#include "passes/pipeline.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "base/error.h"
#include "base/nearest.h"
#include "graph/verifier.h"
#include "passes/autodiff.h"
#include "passes/batches.h"
#include "passes/bf16.h"
#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/fuse.h"
#include "passes/gather_params.h"
#include "passes/head_chunks.h"
#include "passes/leaves.h"
#include "passes/patterns.h"
#include "passes/product_epilogues.h"
#include "passes/recompute.h"
#include "passes/row_gradients.h"
#include "passes/schedule.h"
#include "passes/shard.h"
#include "passes/simplify.h"
#include "passes/split_collectives.h"

namespace lockstep {
namespace {

Graph run_autodiff(const Graph& graph, const PassOptions& options) {
  return differentiate(graph, {.accumulate = options.accumulate_gradients});
}

Graph run_bf16(const Graph& graph, const PassOptions& options) {
  return compute_in_bf16(graph, options.stochastic_rounding);
}
bool asks_for_bf16(const Graph&, const PassOptions& options) { return options.compute == DType::kBF16; }
bool asks_for_shards(const Graph&, const PassOptions& options) { return !options.shard.empty(); }
bool asks_for_units(const Graph&, const PassOptions& options) { return !options.units.empty(); }
bool asks_for_batches(const Graph&, const PassOptions& options) { return options.batches > 1; }
bool asks_for_chunks(const Graph& graph, const PassOptions& options) {
  return options.head_chunks > 1 && has_cross_entropy(graph);
}
bool asks_for_epilogues(const Graph&, const PassOptions& options) { return options.product_epilogues; }
// Without a policy only marks of blocks are left to take out.
bool asks_for_recomputation(const Graph& graph, const PassOptions& options) {
  return options.recompute != Recompute::kNone ||
         std::ranges::any_of(graph.nodes(), [](const Node& node) { return node.op->name == "checkpoint"; });
}
bool has_collectives(const Graph& graph, const PassOptions&) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) { return node.op->traits.collective; });
}

Graph run_simplify(const Graph& graph, const PassOptions& options) {
  return simplify(graph, {.keep_checkpoints = options.recompute == Recompute::kBlock});
}
Graph run_cse(const Graph& graph, const PassOptions&) { return merge_common_subexpressions(graph); }
Graph run_dce(const Graph& graph, const PassOptions&) { return remove_dead_nodes(graph); }
Graph run_chunk_head(const Graph& graph, const PassOptions& options) {
  return chunk_head(graph, options.head_chunks);
}

constexpr std::array kPasses = {
    Pass{"import_patterns", "recognises attention, and relu after batch_norm", Stage::kImported, true,
         apply_import_patterns},
    Pass{"bf16", "computes products and what follows them in bf16, if asked to", Stage::kImported, true,
         run_bf16, asks_for_bf16},
    Pass{"autodiff", "appends the backward computation", Stage::kDifferentiated, true, run_autodiff},
    Pass{"shard", "splits the graph over the ranks of a mesh, if asked to", Stage::kDifferentiated, true,
         run_shard, asks_for_shards},
    Pass{"leaves", "what leaves of a split model share becomes values, what they add up collectives",
         Stage::kDifferentiated, false, lower_leaves},
    Pass{"row_gradients", "gradients of large embedding tables stay lists of rows", Stage::kDifferentiated,
         true, make_row_gradients},
    Pass{"simplify", "folds constants, removes what does nothing", Stage::kDifferentiated, false,
         run_simplify},
    Pass{"cse", "computes common subexpressions once", Stage::kDifferentiated, false, run_cse},
    Pass{"dce", "removes what no output needs", Stage::kDifferentiated, false, run_dce},
    Pass{"head_chunks", "makes logits and their loss for some rows after the other, if asked to",
         Stage::kDifferentiated, true, run_chunk_head, asks_for_chunks},
    Pass{"product_epilogues", "products take along what follows them, where the backend has such products",
         Stage::kDifferentiated, true, take_product_epilogues, asks_for_epilogues},
    Pass{"recompute", "runs parts of forward again to keep less for backward", Stage::kDifferentiated, false,
         recompute, asks_for_recomputation},
    Pass{"patterns", "gives groups of ops the kernels made for them", Stage::kDifferentiated, true,
         apply_library_patterns},
    Pass{"norm_patterns", "norms take along the additions to the residual stream beside them",
         Stage::kDifferentiated, false, apply_norm_patterns},
    Pass{"fuse", "runs pointwise ops in one sweep", Stage::kFused, false, fuse},
    Pass{"split_collectives", "collectives become a start and a done", Stage::kScheduled, false,
         split_collectives, has_collectives},
    Pass{"schedule", "orders the nodes for the fewest live bytes", Stage::kScheduled, false, schedule},
    Pass{"batches", "runs several batches while the parameters of a unit are there, if asked to",
         Stage::kScheduled, false, run_batches_together, asks_for_batches},
    Pass{"gather_params", "gathers parameters that workers own pieces of before their use, if asked to",
         Stage::kScheduled, false, gather_params, asks_for_units},
};

bool listed(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Passes make ops that only later passes and backends know; a text may name them too early.
void check_stage(const Graph& graph, Stage stage) {
  for (const Node& node : graph.nodes())
    if (node.op->stage > stage)
      throw UserError("graph {}: {} is made by passes, for graphs that are {}; this one is {}", graph.name(),
                      node.op->name, name_of(node.op->stage), name_of(stage));
}

}  // namespace

Recompute parse_recompute(std::string_view name) {
  for (const Recompute policy : {Recompute::kNone, Recompute::kFused, Recompute::kCheap, Recompute::kBlock})
    if (name_of(policy) == name) return policy;
  throw UserError("recompute is {}; use none, fused, cheap or block", name);
}

std::span<const Pass> all_passes() { return kPasses; }

const Pass& find_pass(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Pass& pass : kPasses) {
    if (pass.name == name) return pass;
    names.push_back(pass.name);
  }
  throw UserError("unknown pass {}; {}", name, suggestion(name, names));
}

Graph run_passes(const Graph& graph, const PassOptions& options, std::vector<PassTiming>* timings) {
  for (const auto* names : {&options.disabled, &options.dump_after})
    for (const std::string& name : *names) find_pass(name);
  for (const std::string* name : {&options.start_after, &options.stop_after})
    if (!name->empty()) find_pass(*name);
  std::optional<Graph> made;  // none: the graph as it was given
  const auto current = [&]() -> const Graph& { return made ? *made : graph; };
  // Without autodiff, the graph is for inference or was differentiated before.
  Stage stage = listed(options.disabled, "autodiff") ? Stage::kDifferentiated : Stage::kImported;
  std::span<const Pass> to_run = kPasses;
  if (!options.start_after.empty()) {
    const auto been = static_cast<size_t>(&find_pass(options.start_after) - kPasses.data()) + 1;
    for (const Pass& pass : to_run.first(been)) stage = std::max(stage, pass.stage);
    to_run = to_run.subspan(been);
  }
  check_stage(graph, stage);
  for (const Pass& pass : to_run) {
    if (listed(options.disabled, pass.name)) {
      if (options.stop_after == pass.name) break;
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    const bool applies = pass.applies(current(), options);
    if (applies) made = pass.run(current(), options);
    const bool later = pass.stage > stage;
    stage = std::max(stage, pass.stage);
    if (applies || later) verify(current(), stage);
    if (timings != nullptr) {
      const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
      timings->push_back({pass.name, elapsed.count()});
    }
    if (options.dump && listed(options.dump_after, pass.name)) options.dump(pass.name, current());
    if (options.stop_after == pass.name) break;
  }
  return made ? *std::move(made) : graph;
}

}  // namespace lockstep
