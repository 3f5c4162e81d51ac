// What a library pattern is: a function that is shown one node after another and may replace it, with nodes
// around it, by one op that has a kernel of its own.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "passes/loss_node.h"
#include "passes/pipeline.h"

namespace lockstep {

class PatternContext {
 public:
  PatternContext(const Graph& old, Rewriter& rewriter)
      : old_(old), rewriter_(rewriter), users_(users_of(old)), loss_(loss_node(old)) {
    outputs_.assign(static_cast<size_t>(old.value_count()), 0);
    for (const GraphOutput& output : old.outputs()) ++outputs_[static_cast<size_t>(output.value.id)];
  }

  // The graph that is matched, and the one that is being made.
  const Graph& old() const { return old_; }
  Graph& graph() { return rewriter_.graph(); }
  Rewriter& rewriter() { return rewriter_; }

  const Node& node(int32_t n) const { return old_.nodes()[static_cast<size_t>(n)]; }
  // The node that makes a value, if it is made by that op.
  const Node* made_by(Value value, std::string_view op) const {
    const int32_t producer = old_.producer(value);
    return producer >= 0 && node(producer).op->name == op ? &node(producer) : nullptr;
  }
  // The nodes that read a value.
  const std::vector<int32_t>& readers(Value value) const { return users_[static_cast<size_t>(value.id)]; }
  // Whether one operand of one node is all that a value is used for.
  bool read_once(Value value) const {
    return readers(value).size() == 1 && outputs_[static_cast<size_t>(value.id)] == 0;
  }
  // Whether a value exists before node n runs.
  bool known_before(Value value, int32_t n) const { return old_.producer(value) < n; }
  // The node that makes the loss, or -1; and whether two nodes are both in forward or both in backward.
  int32_t loss() const { return loss_; }
  bool same_side(int32_t a, int32_t b) const { return (a <= loss_) == (b <= loss_); }
  // Maps an old result to a new one, which takes over its name where that is free.
  void replace(Value old_value, Value new_value) {
    rewriter_.map(old_value, new_value);
    if (!graph().find(old_.name(old_value)).valid()) graph().rename(new_value, old_.name(old_value));
  }

 private:
  const Graph& old_;
  Rewriter& rewriter_;
  std::vector<std::vector<int32_t>> users_;
  std::vector<int32_t> outputs_;
  int32_t loss_;
};

struct Pattern {
  std::string_view name;
  std::vector<std::string_view> ops;  // it applies to no graph that has none of these
  // Replaces node n and maps its results, and those of any later node that it covers; or returns false.
  // Results that only covered nodes read need not be mapped.
  bool (*apply)(PatternContext&, int32_t n);
};

// Each pattern over the whole graph, one after the other; then what they left without a reader is removed.
Graph apply_patterns(const Graph& graph, std::span<const Pattern> patterns, const PassOptions& options);

// One file each in passes/patterns/.
Pattern transposed_matmul_pattern();
Pattern attention_pattern();
Pattern batch_norm_relu_pattern();
Pattern matmul_f32_result_pattern();
Pattern accumulate_pattern();
Pattern residual_norm_pattern();
Pattern residual_norm_grad_pattern();

}  // namespace lockstep
