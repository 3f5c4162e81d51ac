#include "passes/recompute.h"

#include <algorithm>
#include <limits>

#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "passes/loss_node.h"

namespace lockstep {
namespace {

constexpr std::string_view kPrefix = "again.";
// How many ops a cheap recomputation may chain. Deeper chains (a residual stream of sums) would rebuild the
// whole forward pass at the start of backward and keep it.
constexpr int kMaxDepth = 6;
// Smaller results are kept: running a kernel again costs more than they do.
constexpr int64_t kMinBytes = 4096;

class Recomputation {
 public:
  Recomputation(const Graph& old, const PassOptions& options)
      : old_(old),
        options_(options),
        rewriter_(old),
        loss_(loss_node(old)),
        again_(old.nodes().size(), false),
        kept_(static_cast<size_t>(old.value_count()), false),
        made_again_(static_cast<size_t>(old.value_count())) {}

  Graph run() && {
    if (options_.recompute == Recompute::kFused) choose_fused();
    if (options_.recompute == Recompute::kCheap) choose_cheap();
    if (options_.recompute == Recompute::kBlock) choose_blocks();
    for (int32_t n = 0; n < static_cast<int32_t>(old_.nodes().size()); ++n) emit(n);
    if (options_.explain && options_.recompute != Recompute::kNone)
      options_.explain("recompute", fmt::format("policy {}: {} of {} forward nodes run again",
                                                name_of(options_.recompute), count_, loss_ + 1));
    return std::move(rewriter_).finish();
  }

 private:
  const Node& node(int32_t n) const { return old_.nodes()[static_cast<size_t>(n)]; }
  static bool is_checkpoint(const Node& node) { return node.op->name == "checkpoint"; }

  // The value whose buffer a view shows.
  Value origin(Value value) const {
    while (old_.producer(value) >= 0 && node(old_.producer(value)).op->traits.view)
      value = node(old_.producer(value)).inputs[0];
    return value;
  }

  // A gated MLP is the example: backward reads silu(gate) where it also computes the slope of silu from gate.
  void choose_fused() {
    // Of what forward made: whether pointwise ops of backward read it, element by element, and others do.
    std::vector<bool> in_sweeps(static_cast<size_t>(old_.value_count()), false), elsewhere = in_sweeps;
    for (int32_t n = loss_ + 1; n < static_cast<int32_t>(old_.nodes().size()); ++n)
      for (const Value input : node(n).inputs) {
        const bool sweeps =
            node(n).op->traits.pointwise && old_.type(input).shape == old_.type(node(n).outputs[0]).shape;
        (sweeps ? in_sweeps : elsewhere)[static_cast<size_t>(input.id)] = true;
      }
    for (const GraphOutput& output : old_.outputs()) elsewhere[static_cast<size_t>(output.value.id)] = true;
    for (int32_t n = 0; n <= loss_; ++n) {
      const Node& source = node(n);
      if (!source.op->traits.pointwise || old_.type(source.outputs[0]).bytes() < kMinBytes) continue;
      const Value made = source.outputs[0];
      again_[static_cast<size_t>(n)] =
          in_sweeps[static_cast<size_t>(made.id)] && !elsewhere[static_cast<size_t>(made.id)] &&
          std::all_of(source.inputs.begin(), source.inputs.end(), [&](Value input) {
            return in_sweeps[static_cast<size_t>(input.id)] &&
                   old_.type(input).shape == old_.type(made).shape;
          });
    }
  }

  void choose_cheap() {
    std::vector<bool> wanted(static_cast<size_t>(old_.value_count()), false);
    for (int32_t n = loss_ + 1; n < static_cast<int32_t>(old_.nodes().size()); ++n)
      for (const Value input : node(n).inputs) wanted[static_cast<size_t>(origin(input).id)] = true;
    constexpr int kNever = std::numeric_limits<int>::max();
    // Per value: how many ops away from kept values it is; 0 for what is kept.
    std::vector<int> depth(static_cast<size_t>(old_.value_count()), 0);
    for (int32_t n = 0; n <= loss_; ++n) {
      int deepest = 0;
      for (const Value input : node(n).inputs)
        deepest = std::max(deepest, depth[static_cast<size_t>(input.id)]);
      const bool view = node(n).op->traits.view;
      const bool cheap = node(n).op->traits.recompute_cheap && !node(n).op->traits.collective;
      int64_t wanted_bytes = 0;
      bool any_wanted = false;
      for (const Value output : node(n).outputs) {
        if (!wanted[static_cast<size_t>(output.id)]) continue;
        any_wanted = true;
        wanted_bytes += old_.type(output).bytes();
      }
      const bool worth = !any_wanted || wanted_bytes >= kMinBytes;
      again_[static_cast<size_t>(n)] = view ? deepest > 0 : cheap && deepest < kMaxDepth && worth;
      for (const Value output : node(n).outputs) {
        int& result = depth[static_cast<size_t>(output.id)];
        if (view)
          result = deepest;
        else if (again_[static_cast<size_t>(n)])
          result = deepest + 1;
        else
          result = wanted[static_cast<size_t>(output.id)] ? 0 : kNever;
      }
    }
  }

  void choose_blocks() {
    std::vector<int32_t> segment(static_cast<size_t>(loss_ + 1), 0);
    int32_t current = 0;
    for (int32_t n = 0; n <= loss_; ++n) {
      if (is_checkpoint(node(n))) ++current;
      segment[static_cast<size_t>(n)] = current;
    }
    for (int32_t n = 0; n <= loss_; ++n) {
      const int32_t here = segment[static_cast<size_t>(n)];
      again_[static_cast<size_t>(n)] =
          here > 0 && here < current && !is_checkpoint(node(n)) && !node(n).op->traits.collective;
      // A value that enters a block other than through its mark is kept too; so is what a mark is a view of.
      for (const Value input : node(n).inputs) {
        const int32_t producer = old_.producer(input);
        if (producer >= 0 && segment[static_cast<size_t>(producer)] != here)
          kept_[static_cast<size_t>(input.id)] = true;
      }
    }
  }

  bool runs_again(Value value) const {
    const int32_t producer = old_.producer(value);
    return producer >= 0 && producer <= loss_ && again_[static_cast<size_t>(producer)] &&
           !kept_[static_cast<size_t>(value.id)];
  }

  void emit(int32_t n) {
    if (is_checkpoint(node(n))) {
      rewriter_.map(node(n).outputs[0], rewriter_.mapped(node(n).inputs[0]));
      return;
    }
    if (n <= loss_) {
      rewriter_.copy(node(n));
      return;
    }
    const std::vector<Value> results = copy(node(n), operands(node(n)), "");
    for (size_t i = 0; i < results.size(); ++i) rewriter_.map(node(n).outputs[i], results[i]);
  }

  std::vector<Value> copy(const Node& source, const std::vector<Value>& inputs, std::string_view prefix) {
    Graph& graph = rewriter_.graph();
    const auto name = [&](size_t i) { return fmt::format("{}{}", prefix, old_.name(source.outputs[i])); };
    std::vector<Value> results = graph.emit_all(*source.op, inputs, source.attributes, name(0));
    for (size_t i = 1; i < results.size(); ++i)
      if (!graph.find(name(i)).valid()) graph.rename(results[i], name(i));
    return results;
  }

  // The operands of a node in backward: as made again where that was chosen, making them on the way.
  std::vector<Value> operands(const Node& reader) {
    std::vector<Value> values;
    for (const Value input : reader.inputs)
      values.push_back(runs_again(input) ? again(input) : rewriter_.mapped(input));
    return values;
  }

  Value again(Value value) {
    Value& made = made_again_[static_cast<size_t>(value.id)];
    if (made.valid()) return made;
    const Node& source = node(old_.producer(value));
    const std::vector<Value> results = copy(source, operands(source), kPrefix);
    for (size_t i = 0; i < results.size(); ++i)
      made_again_[static_cast<size_t>(source.outputs[i].id)] = results[i];
    ++count_;
    return made;
  }

  const Graph& old_;
  const PassOptions& options_;
  Rewriter rewriter_;
  int32_t loss_;
  std::vector<bool> again_;  // per node
  std::vector<bool> kept_;   // per value, whatever its node says
  std::vector<Value> made_again_;
  int64_t count_ = 0;
};

}  // namespace

Graph recompute(const Graph& graph, const PassOptions& options) {
  return Recomputation(graph, options).run();
}

bool is_recomputed(const Graph& graph, const Node& node) {
  return std::all_of(node.outputs.begin(), node.outputs.end(),
                     [&](Value output) { return graph.name(output).starts_with(kPrefix); });
}

}  // namespace lockstep
