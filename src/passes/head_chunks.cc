#include "passes/head_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "graph/text.h"
#include "passes/dce.h"

namespace lockstep {
namespace {

using Kind = Placement::Kind;

bool by_rows(const Placement& placement) { return placement == Placement::split(0); }

// The nodes that go through in chunks, and how each is cut.
class HeadRegion {
 public:
  explicit HeadRegion(const Graph& graph) : graph_(graph), users_(users_of(graph)) {
    for (const Node& node : graph.nodes()) {
      if (node.op->name != "cross_entropy") continue;
      if (logits_.valid()) throw UserError("train.head_chunks: {} has several losses", graph.name());
      logits_ = node.inputs[0];
    }
    if (!logits_.valid())
      throw UserError("train.head_chunks: the loss of {} is no cross-entropy; leave it out", graph.name());
    widen(logits_);
    find_cuts();
  }

  int64_t rows() const { return graph_.type(logits_).shape[0]; }
  const std::map<int32_t, ShardingSignature>& nodes() const { return cuts_; }
  bool has(int32_t node) const { return cuts_.contains(node); }

 private:
  const Node& node(int32_t n) const { return graph_.nodes()[static_cast<size_t>(n)]; }
  bool is_wide(Value value) const { return wide_.contains(value.id); }

  void widen(Value value) {
    if (!wide_.insert(value.id).second) return;
    if (graph_.producer(value) < 0)
      throw UserError("train.head_chunks: the logits of {} are an input", graph_.name());
    touched_.insert(graph_.producer(value));
    for (const int32_t reader : users_[static_cast<size_t>(value.id)]) touched_.insert(reader);
  }

  // A node that is cut may make other values of the logits' shape, which go the same way.
  void find_cuts() {
    for (size_t known = 0; known != wide_.size();) {
      known = wide_.size();
      for (const int32_t n : std::set<int32_t>(touched_)) {
        const ShardingSignature& cut = cuts_[n] = cut_of(node(n));
        if (node(n).op->name == "matmul") continue;  // on its other side rows are shorter
        for (size_t i = 0; i < cut.inputs.size(); ++i) follow(node(n).inputs[i], cut.inputs[i]);
        for (size_t i = 0; i < cut.outputs.size(); ++i) follow(node(n).outputs[i], cut.outputs[i]);
      }
    }
  }

  void follow(Value value, const Placement& placement) {
    if (by_rows(placement) && graph_.type(value).shape == graph_.type(logits_).shape) widen(value);
  }

  ShardingSignature cut_of(const Node& node) const {
    if (node.op->sharding != nullptr)
      for (const ShardingSignature& cut : node.op->sharding(graph_, node))
        if (fits(node, cut)) return cut;
    throw UserError("train.head_chunks: {} does not go row by row", to_text(graph_, node));
  }

  bool fits(const Node& node, const ShardingSignature& cut) const {
    return fit(node.inputs, cut.inputs, false) && fit(node.outputs, cut.outputs, true);
  }

  bool fit(const std::vector<Value>& values, const std::vector<Placement>& placements, bool sums) const {
    for (size_t i = 0; i < values.size(); ++i) {
      const Placement& placement = placements[i];
      if (placement.kind == Kind::kPartial && !sums) return false;
      if (is_wide(values[i]) && !by_rows(placement)) return false;
      if (placement.kind != Kind::kSplit) continue;
      if (placement.axis != 0 || graph_.type(values[i]).shape[0] != rows()) return false;
    }
    return true;
  }

  const Graph& graph_;
  std::vector<std::vector<int32_t>> users_;
  Value logits_;
  std::set<int32_t> wide_;     // values of the logits' shape, by id
  std::set<int32_t> touched_;  // nodes that read or write one
  std::map<int32_t, ShardingSignature> cuts_;
};

class Chunking {
 public:
  Chunking(const Graph& old, int64_t chunks)
      : old_(old), chunks_(chunks), region_(old), users_(users_of(old)), rewriter_(old) {
    if (chunks > region_.rows())
      throw UserError("train.head_chunks is {}, but a microbatch has {} rows of logits; use less", chunks,
                      region_.rows());
  }

  Graph run() && {
    copy_what_comes_before();
    find_totals();
    for (int64_t c = 0; c < chunks_; ++c) emit_chunk(c);
    join();
    for (int32_t n = 0; n < static_cast<int32_t>(old_.nodes().size()); ++n)
      if (!rewriter_.has(node(n).outputs[0])) rewriter_.copy(node(n));
    return std::move(rewriter_).finish();
  }

 private:
  // A sum over rows: the node that makes it first, and which of its results it is.
  struct Total {
    Value made;           // by a node of the region
    Value stands_for;     // itself, or what a cast or an addition to a gradient makes of it
    bool in_f32 = false;  // of a product that was cast
    Value so_far = {};    // of the new graph
  };

  const Node& node(int32_t n) const { return old_.nodes()[static_cast<size_t>(n)]; }
  Graph& graph() { return rewriter_.graph(); }

  // All that the chunks may read: what stands before the last of their nodes and follows from none of them.
  void copy_what_comes_before() {
    std::set<int32_t> later;  // values
    const int32_t last = region_.nodes().rbegin()->first;
    for (int32_t n = 0; n <= last; ++n) {
      const bool follows =
          std::ranges::any_of(node(n).inputs, [&](Value input) { return later.contains(input.id); });
      if (!region_.has(n) && !follows) {
        rewriter_.copy(node(n));
        continue;
      }
      for (const Value output : node(n).outputs) later.insert(output.id);
      if (!region_.has(n)) continue;
      for (const Value input : node(n).inputs)
        if (later.contains(input.id) && !region_.has(old_.producer(input)))
          throw UserError("train.head_chunks: {} reads what follows from all rows", to_text(old_, node(n)));
    }
  }

  // The only reader of a value, unless it is an output of the graph.
  std::optional<int32_t> only_reader(Value value) const {
    const std::vector<int32_t>& readers = users_[static_cast<size_t>(value.id)];
    const bool is_output =
        std::ranges::any_of(old_.outputs(), [&](const GraphOutput& output) { return output.value == value; });
    if (readers.size() != 1 || is_output) return std::nullopt;
    return readers[0];
  }

  void find_totals() {
    for (const auto& [n, cut] : region_.nodes())
      for (size_t i = 0; i < cut.outputs.size(); ++i)
        if (cut.outputs[i].kind == Kind::kPartial) totals_.push_back(total_of(n, node(n).outputs[i]));
  }

  // Products are added up in what the gradient holds already, in f32 where the sum is wanted so.
  Total total_of(int32_t n, Value made) {
    Total total{.made = made, .stands_for = made};
    if (!is_product(n)) return total;
    std::optional<int32_t> reader = only_reader(total.stands_for);
    if (reader && node(*reader).op->name == "cast" &&
        old_.type(node(*reader).outputs[0]).dtype == DType::kF32) {
      total.in_f32 = old_.type(made).dtype != DType::kF32;
      total.stands_for = node(*reader).outputs[0];
      reader = only_reader(total.stands_for);
    }
    if (!reader || node(*reader).op->name != "add") return total;
    const std::vector<Value>& addends = node(*reader).inputs;
    const Value other = addends[0] == total.stands_for ? addends[1] : addends[0];
    if (old_.producer(other) >= 0 || old_.role(other) != Role::kGrad || !only_reader(other)) return total;
    total.so_far = rewriter_.mapped(other);
    total.stands_for = node(*reader).outputs[0];
    return total;
  }

  bool is_product(int32_t n) const { return node(n).op->name == "matmul" && node(n).inputs.size() == 2; }

  int64_t begin_of(int64_t chunk) const { return region_.rows() * chunk / chunks_; }

  void emit_chunk(int64_t chunk) {
    here_.clear();
    for (const auto& [n, cut] : region_.nodes()) emit(n, cut, chunk);
  }

  void emit(int32_t n, const ShardingSignature& cut, int64_t chunk) {
    std::vector<Value> operands;
    for (size_t i = 0; i < cut.inputs.size(); ++i)
      operands.push_back(operand(node(n).inputs[i], cut.inputs[i], chunk));
    Attributes attributes = node(n).attributes;
    const Value first = node(n).outputs[0];
    if (attributes.find("shape") != nullptr && by_rows(cut.outputs[0])) {
      const Shape shape = of_chunk(old_.type(first).shape, chunk);
      attributes.set("shape", std::vector<int64_t>(shape.begin(), shape.end()));
    }
    Total* const sum = is_product(n) ? total(first) : nullptr;
    if (sum != nullptr) {
      if (sum->in_f32) attributes.set("dtype", "f32");
      if (sum->so_far.valid()) operands.push_back(sum->so_far);
    }
    const std::vector<Value> results = graph().emit_all(*node(n).op, operands, attributes,
                                                        fmt::format("{}.chunk{}", old_.name(first), chunk));
    if (sum != nullptr) {
      sum->so_far = results[0];
      return;
    }
    for (size_t i = 0; i < results.size(); ++i) take(node(n).outputs[i], results[i]);
  }

  void take(Value old_value, Value result) {
    here_[old_value.id] = result;
    if (Total* const sum = total(old_value))
      sum->so_far = sum->so_far.valid() ? graph().emit("add", {sum->so_far, result}) : result;
    else
      pieces_[old_value.id].push_back(result);
  }

  Total* total(Value made) {
    const auto found = std::ranges::find(totals_, made, &Total::made);
    return found == totals_.end() ? nullptr : &*found;
  }

  Value operand(Value old_value, const Placement& placement, int64_t chunk) {
    if (const auto found = here_.find(old_value.id); found != here_.end()) return found->second;
    const Value whole = rewriter_.mapped(old_value);
    if (placement.kind != Kind::kSplit) return whole;
    const Value piece = graph().emit(
        "slice", {whole}, {{"axis", int64_t{0}}, {"begin", begin_of(chunk)}, {"end", begin_of(chunk + 1)}},
        fmt::format("{}.chunk{}", old_.name(old_value), chunk));
    return here_[old_value.id] = piece;
  }

  Shape of_chunk(const Shape& shape, int64_t chunk) const {
    return shape.with(0, begin_of(chunk + 1) - begin_of(chunk));
  }

  // Whoever follows reads sums and rows as ever. Pieces that nobody reads are left to dce.
  void join() {
    for (const Total& sum : totals_) {
      if (const std::string& name = old_.name(sum.stands_for); !graph().find(name).valid())
        graph().rename(sum.so_far, name);
      rewriter_.map(sum.stands_for, sum.so_far);
      rewriter_.map(sum.made, sum.so_far);
    }
    for (const auto& [n, cut] : region_.nodes())
      for (const Value output : node(n).outputs)
        if (total(output) == nullptr) rewriter_.map(output, joined(output));
  }

  Value joined(Value old_value) {
    const bool is_read = std::ranges::any_of(users_[static_cast<size_t>(old_value.id)],
                                             [&](int32_t reader) { return !region_.has(reader); }) ||
                         std::ranges::any_of(old_.outputs(), [&](const GraphOutput& output) {
                           return output.value == old_value;
                         });
    const std::vector<Value>& pieces = pieces_.at(old_value.id);
    if (!is_read) return pieces[0];
    return graph().emit_all("concat", pieces, {{"axis", int64_t{0}}}, old_.name(old_value))[0];
  }

  const Graph& old_;
  int64_t chunks_;
  HeadRegion region_;
  std::vector<std::vector<int32_t>> users_;
  Rewriter rewriter_;
  std::vector<Total> totals_;
  std::map<int32_t, Value> here_;                 // of the chunk at hand, by the old value's id
  std::map<int32_t, std::vector<Value>> pieces_;  // rows of all chunks
};

}  // namespace

bool has_cross_entropy(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [](const Node& node) { return node.op->name == "cross_entropy"; });
}

Graph chunk_head(const Graph& graph, int64_t chunks) {
  return remove_dead_nodes(Chunking(graph, chunks).run());
}

}  // namespace lockstep
