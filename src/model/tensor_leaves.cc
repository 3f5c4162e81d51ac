#include "model/tensor_leaves.h"

#include <bit>
#include <map>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/text.h"
#include "model/frozen_params.h"

namespace lockstep {
namespace {

class LeafSplitter {
 public:
  LeafSplitter(const Model& model, const TensorShare& share)
      : model_(model),
        old_(model.graph),
        share_(share),
        cuts_(old_, share.leaves),
        graph_(old_.ops(), old_.name()) {}

  LeafModel run() && {
    for (const GraphInput& input : old_.inputs()) add_input(input);
    for (int32_t n = 0; n < static_cast<int32_t>(old_.nodes().size()); ++n) add_node(n);
    for (const GraphOutput& output : old_.outputs()) {
      const Value value = whole(output.value);
      output.target.valid() ? graph_.add_update(whole(output.target), value) : graph_.add_output(value);
    }
    return {with_graph(model_, std::move(graph_), starts()), std::move(pieces_)};
  }

 private:
  using Leaves = std::vector<Value>;  // this worker's

  size_t own() const { return static_cast<size_t>(share_.own()); }
  Attributes group() const { return {{"group", std::string("tensor")}, {"size", share_.workers}}; }
  std::string leaf_name(Value value, size_t i) const {
    return fmt::format("{}.leaf{}", old_.name(value), share_.first() + static_cast<int64_t>(i));
  }

  // Of what a leaf reads of a whole value, also where that is the sum of values that leaves made.
  std::string read_name(Value value, size_t i) const {
    const std::string name = leaf_name(value, i);
    return graph_.find(name).valid() ? name + "_1" : name;
  }

  void add_input(const GraphInput& input) {
    const std::string& name = old_.name(input.value);
    const Type& type = old_.type(input.value);
    const LeafCut& cut = cuts_.cut(input.value);
    if (!cut.is_cut()) {
      whole_[input.value.id] = graph_.add_input(name, type, input.role);
      return;
    }
    for (size_t i = 0; i < own(); ++i) {
      const LeafPiece piece{name, type.shape, cut, share_.first() + static_cast<int64_t>(i), share_.leaves};
      leaves_[{input.value.id, cut.axis}].push_back(
          graph_.add_input(piece.name(), {type.dtype, piece.shape()}, input.role));
      pieces_.emplace(piece.name(), piece);
    }
  }

  // How the pieces begin is said for those of them that are parameters of the graph.
  std::vector<ParamInit> starts() const {
    std::vector<ParamInit> starts = model_.params;
    for (const auto& [name, piece] : pieces_)
      for (const ParamInit& start : model_.params) {
        if (start.name != piece.param) continue;
        starts.push_back(start);
        starts.back().name = name;
      }
    return starts;
  }

  void add_node(int32_t n) {
    const Node& node = old_.nodes()[static_cast<size_t>(n)];
    switch (cuts_.kind(n)) {
      case LeafCuts::Kind::kOnDemand: return;
      case LeafCuts::Kind::kWhole: return add_whole(node);
      case LeafCuts::Kind::kLeaves: {
        const auto results = emit_leaves(node, cuts_.operands(n), cuts_.cut(node.outputs[0]));
        for (size_t i = 0; i < results.size(); ++i)
          for (size_t o = 0; o < node.outputs.size(); ++o)
            leaves_[{node.outputs[o].id, cuts_.cut(node.outputs[o]).axis}].push_back(results[i][o]);
        return;
      }
      case LeafCuts::Kind::kLoss: return add_loss(node, cuts_.operands(n)[0]);
      case LeafCuts::Kind::kRows: {
        Leaves parts;
        for (const std::vector<Value>& part : emit_leaves(node, cuts_.operands(n), {}))
          parts.push_back(part[0]);
        const Value result = node.outputs[0];
        whole_[result.id] = graph_.emit_all("leaf_sum", parts, group(), old_.name(result))[0];
        return;
      }
    }
  }

  void add_loss(const Node& node, const LeafCut& columns) {
    Leaves operands = leaves(node.inputs[0], columns);
    for (size_t i = 1; i < node.inputs.size(); ++i) operands.push_back(whole(node.inputs[i]));
    const int64_t classes = old_.type(node.inputs[0]).shape[1];
    Attributes attributes = group();
    for (const char* kept : {"ignore", "smoothing"}) attributes.set(kept, *node.attributes.find(kept));
    attributes.set("leaves", share_.own());
    attributes.set("first", share_.first() * (classes / share_.leaves));
    attributes.set("classes", classes);
    take_results(node,
                 graph_.emit_all("cross_entropy_leaves", operands, attributes, old_.name(node.outputs[0])));
  }

  void take_results(const Node& node, const std::vector<Value>& results) {
    for (size_t o = 0; o < results.size(); ++o) {
      if (o > 0) graph_.rename(results[o], old_.name(node.outputs[o]));
      whole_[node.outputs[o].id] = results[o];
    }
  }

  void add_whole(const Node& node) {
    std::vector<Value> operands;
    for (const Value input : node.inputs) operands.push_back(whole(input));
    take_results(node, graph_.emit_all(*node.op, operands, node.attributes, old_.name(node.outputs[0])));
  }

  // The results of a node for each leaf.
  std::vector<std::vector<Value>> emit_leaves(const Node& node, const std::vector<LeafCut>& cuts,
                                              const LeafCut& result) {
    std::vector<Leaves> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      operands.push_back(cuts[i].is_cut() ? leaves(node.inputs[i], cuts[i]) : shared(node.inputs[i]));
    std::vector<std::vector<Value>> results;
    for (size_t i = 0; i < own(); ++i) {
      std::vector<Value> inputs;
      for (const Leaves& operand : operands) inputs.push_back(operand[i]);
      results.push_back(
          graph_.emit_all(*node.op, inputs, attributes_of(node, result, i), leaf_name(node.outputs[0], i)));
      for (size_t o = 1; o < node.outputs.size(); ++o)
        graph_.rename(results.back()[o], leaf_name(node.outputs[o], i));
      require_type(node, result, graph_.type(results.back()[0]));
    }
    return results;
  }

  Shape local(const Shape& shape, const LeafCut& cut) const {
    return cut.is_cut() ? shape.with(cut.axis, shape[cut.axis] / share_.leaves) : shape;
  }

  // Attributes that say a shape, heads or a part of an axis say those of a leaf; a table's rows say where
  // they are.
  Attributes attributes_of(const Node& node, const LeafCut& result, size_t i) const {
    Attributes attributes = node.attributes;
    if (node.op->name == "embedding" && cuts_.kind(old_.producer(node.outputs[0])) == LeafCuts::Kind::kRows) {
      const int64_t rows = old_.type(node.inputs[0]).shape[0];
      attributes.set("first", (share_.first() + static_cast<int64_t>(i)) * (rows / share_.leaves));
      attributes.set("whole", rows);
    }
    const Shape shape = local(old_.type(node.outputs[0]).shape, result);
    if (attributes.find("shape") != nullptr)
      attributes.set("shape", std::vector<int64_t>(shape.begin(), shape.end()));
    if (node.op->name == "attention_qkv")
      for (const char* heads : {"heads", "kv_heads"})
        attributes.set(heads, node.attributes.integer(heads) / share_.leaves);
    if (node.op->name == "slice" && cuts_.cut(node.inputs[0]).axis == axis_of(node))
      for (const char* edge : {"begin", "end"})
        attributes.set(edge, node.attributes.integer(edge) / share_.leaves);
    return attributes;
  }
  int axis_of(const Node& slice) const {
    const int64_t axis = slice.attributes.integer("axis");
    return static_cast<int>(axis < 0 ? axis + old_.type(slice.inputs[0]).shape.rank() : axis);
  }

  void require_type(const Node& node, const LeafCut& result, const Type& type) const {
    const Type expected{type.dtype, local(old_.type(node.outputs[0]).shape, result)};
    LOCKSTEP_CHECK(type == expected, "{} is {} in one of {} leaves", to_text(old_, node), to_string(type),
                   share_.leaves);
  }

  Value whole(Value value) {
    const auto found = whole_.find(value.id);
    if (found != whole_.end()) return found->second;
    LOCKSTEP_CHECK(cuts_.on_demand(value), "{} is not whole", old_.name(value));
    add_whole(old_.nodes()[static_cast<size_t>(old_.producer(value))]);
    return whole_.at(value.id);
  }

  Leaves leaves(Value value, const LeafCut& cut) {
    const std::pair key(value.id, cut.axis);
    const auto found = leaves_.find(key);
    if (found != leaves_.end()) return found->second;
    LOCKSTEP_CHECK(cuts_.on_demand(value), "{} is whole", old_.name(value));
    const Node& node = old_.nodes()[static_cast<size_t>(old_.producer(value))];
    Leaves made;
    for (const std::vector<Value>& results : emit_leaves(node, cuts_.operands_on_demand(node, cut), cut))
      made.push_back(results[0]);
    return leaves_[key] = made;
  }

  // A whole value as leaves read it: each gives a gradient of it.
  Leaves shared(Value value) {
    const Value all = whole(value);
    if (!is_floating(old_.type(value).dtype)) return Leaves(own(), all);
    Leaves& made = shared_[value.id];
    if (made.empty()) {
      Attributes attributes = group();
      attributes.set("leaves", share_.own());
      made = graph_.emit_all("spread", std::span(&all, 1), attributes, read_name(value, 0));
      for (size_t i = 1; i < own(); ++i) graph_.rename(made[i], read_name(value, i));
    }
    return made;
  }

  const Model& model_;
  const Graph& old_;
  const TensorShare share_;
  const LeafCuts cuts_;
  Graph graph_;
  LeafPieces pieces_;
  std::map<int32_t, Value> whole_;  // by the old value
  std::map<int32_t, Leaves> shared_;
  std::map<std::pair<int32_t, int>, Leaves> leaves_;  // and the axis
};

}  // namespace

bool TensorShare::is_possible(int64_t leaves, int64_t workers) {
  if (workers < 1 || leaves % workers != 0) return false;
  return workers == 1 || std::has_single_bit(static_cast<uint64_t>(leaves / workers));
}

LeafModel split_into_leaves(const Model& model, const TensorShare& share) {
  LOCKSTEP_CHECK(TensorShare::is_possible(share.leaves, share.workers), "{} leaves over {} workers",
                 share.leaves, share.workers);
  return LeafSplitter(model, share).run();
}

}  // namespace lockstep
