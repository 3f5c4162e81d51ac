#include "passes/patterns.h"

#include <algorithm>
#include <array>
#include <optional>

#include "graph/text.h"
#include "passes/dce.h"
#include "passes/patterns/pattern.h"

namespace lockstep {
namespace {

bool may_apply(const Graph& graph, const Pattern& pattern) {
  return std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    return std::ranges::find(pattern.ops, node.op->name) != pattern.ops.end();
  });
}

// Nothing where it applies nowhere.
std::optional<Graph> apply_pattern(const Graph& graph, const Pattern& pattern, const PassOptions& options) {
  if (!may_apply(graph, pattern)) return std::nullopt;
  Rewriter rewriter(graph);
  PatternContext context(graph, rewriter);
  bool changed = false;
  for (int32_t n = 0; n < static_cast<int32_t>(graph.nodes().size()); ++n) {
    const Node& node = context.node(n);
    const bool covered = std::all_of(node.outputs.begin(), node.outputs.end(),
                                     [&](Value output) { return rewriter.has(output); });
    if (covered) continue;
    if (pattern.apply(context, n)) {
      changed = true;
      if (options.explain)
        options.explain("patterns", fmt::format("{}: {}", pattern.name, to_text(graph, node)));
    } else {
      rewriter.copy(node);
    }
  }
  if (!changed) return std::nullopt;
  return remove_dead_nodes(std::move(rewriter).finish());
}

}  // namespace

Graph apply_patterns(const Graph& graph, std::span<const Pattern> patterns, const PassOptions& options) {
  std::optional<Graph> current;
  for (const Pattern& pattern : patterns)
    if (std::optional<Graph> next = apply_pattern(current ? *current : graph, pattern, options))
      current = std::move(next);
  return current ? *std::move(current) : graph;
}

Graph apply_import_patterns(const Graph& graph, const PassOptions& options) {
  return apply_patterns(
      graph, std::array{transposed_matmul_pattern(), attention_pattern(), batch_norm_relu_pattern()},
      options);
}

Graph apply_library_patterns(const Graph& graph, const PassOptions& options) {
  return apply_patterns(
      graph, std::array{transposed_matmul_pattern(), matmul_f32_result_pattern(), accumulate_pattern()},
      options);
}

Graph apply_norm_patterns(const Graph& graph, const PassOptions& options) {
  return apply_patterns(graph, std::array{residual_norm_pattern(), residual_norm_grad_pattern()}, options);
}

}  // namespace lockstep
