#include "passes/stage.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "passes/autodiff.h"
#include "passes/loss_node.h"

namespace lockstep {
namespace {

bool is_param(Role role) { return role == Role::kParam || role == Role::kFrozen; }

// Per node: made of parameters alone, and of what rounds them at random: casts. Such a node belongs to no
// place in the model.
std::vector<bool> made_of_weights(const Graph& graph) {
  std::vector<bool> made(graph.nodes().size(), false);
  for (size_t n = 0; n < made.size(); ++n) {
    bool any = false, all = true;
    for (const Value input : graph.nodes()[n].inputs) {
      const int32_t producer = graph.producer(input);
      const bool weights = producer < 0 ? is_param(graph.role(input)) : made[static_cast<size_t>(producer)];
      const bool constant = producer >= 0 && graph.nodes()[static_cast<size_t>(producer)].inputs.empty();
      const bool key =
          producer < 0 && graph.role(input) == Role::kInput && graph.type(input).dtype == DType::kI64;
      any |= weights;
      all &= weights || constant || key;
    }
    made[n] = any && all;
  }
  return made;
}

// Contiguous groups of segments with the smallest largest cost, and among these the most equal ones.
std::vector<int> balanced(const std::vector<double>& cost, int groups) {
  const size_t n = cost.size();
  const double never = std::numeric_limits<double>::infinity();
  struct Best {
    double largest, squares;
    size_t begin;
    bool operator<(const Best& other) const {
      return largest != other.largest ? largest < other.largest : squares < other.squares;
    }
  };
  // best[g][i]: the first i segments in g groups.
  std::vector<std::vector<Best>> best(static_cast<size_t>(groups) + 1,
                                      std::vector<Best>(n + 1, {never, never, 0}));
  best[0][0] = {0, 0, 0};
  for (size_t g = 1; g <= static_cast<size_t>(groups); ++g)
    for (size_t i = g; i <= n; ++i) {
      double sum = 0;
      for (size_t begin = i; begin-- > g - 1;) {
        sum += cost[begin];
        const Best& before = best[g - 1][begin];
        const Best one{std::max(before.largest, sum), before.squares + sum * sum, begin};
        if (one < best[g][i]) best[g][i] = one;
      }
    }
  std::vector<int> group_of(n, 0);
  size_t end = n;
  for (auto g = static_cast<size_t>(groups); g > 0; --g) {
    const size_t begin = best[g][end].begin;
    std::fill(group_of.begin() + static_cast<int64_t>(begin), group_of.begin() + static_cast<int64_t>(end),
              static_cast<int>(g) - 1);
    end = begin;
  }
  return group_of;
}

}  // namespace

std::string slot_name(std::string_view value) { return fmt::format("slot.{}", value); }

int StageMap::stage_of(std::string_view param) const {
  const auto found = params.find(param);
  return found == params.end() ? 0 : found->second;
}

namespace {

// The parameters that a value is, or is made of alone.
void add_params_of(const Graph& graph, const std::vector<bool>& of_weights, Value value,
                   std::set<std::string>& params) {
  const int32_t producer = graph.producer(value);
  if (producer < 0 && is_param(graph.role(value))) params.insert(graph.name(value));
  if (producer < 0 || !of_weights[static_cast<size_t>(producer)]) return;
  for (const Value input : graph.nodes()[static_cast<size_t>(producer)].inputs)
    add_params_of(graph, of_weights, input, params);
}

}  // namespace

StageMap assign_stages(const Graph& forward, int stages) {
  const std::vector<bool> of_weights = made_of_weights(forward);
  std::vector<double> cost(1, 0.0);
  std::vector<size_t> segment;
  for (const Node& node : forward.nodes()) {
    if (node.op->name == "checkpoint") cost.push_back(0);
    const bool has_place = !of_weights[segment.size()];
    segment.push_back(cost.size() - 1);
    if (has_place) cost.back() += cost_of(forward, node).flops;
  }
  if (static_cast<int>(cost.size()) <= stages)
    throw UserError(
        "a pipeline of {} stages needs a model of at least as many blocks, and this one has {}; use at most "
        "{} stages (strategy.pipeline, times strategy.chunks where stages are interleaved)",
        stages, cost.size() - 1, cost.size() - 1);
  const std::vector<int> stage_of_segment = balanced(cost, stages);
  StageMap map{stages, {}};
  for (size_t n = 0; n < segment.size(); ++n) {
    if (of_weights[n]) continue;
    const int stage = stage_of_segment[segment[n]];
    std::set<std::string> params;
    for (const Value input : forward.nodes()[n].inputs) add_params_of(forward, of_weights, input, params);
    for (const std::string& param : params) {
      const auto [found, is_new] = map.params.emplace(param, stage);
      if (!is_new && found->second != stage) map.copies[param].insert(stage);
    }
  }
  return map;
}

namespace {

constexpr int kFree = -1;  // made of data alone: made wherever it is needed

// The stage of every node of one graph.
class Assignment {
 public:
  Assignment(const Graph& graph, const StageMap& map)
      : graph_(graph),
        map_(map),
        loss_(loss_node(graph)),
        stage_(graph.nodes().size(), kFree),
        of_weights_(made_of_weights(graph)) {
    LOCKSTEP_CHECK(loss_ >= 0, "graph {} is not differentiated", graph.name());
    for (const GraphInput& input : graph.inputs()) of_input_.push_back(stage_of(input));
    for (int32_t n = 0; n <= loss_; ++n) stage_[at(n)] = forward_stage(n);
    find_readers();
    for (const GraphOutput& output : graph.outputs())
      if (output.target.valid()) pin(output);
    for (int32_t n = loss_ + 1; n < static_cast<int32_t>(stage_.size()); ++n)
      stage_[at(n)] = backward_stage(n);
  }

  bool is_forward(int32_t n) const { return n <= loss_; }
  int stage(int32_t n) const { return stage_[at(n)]; }
  const Node& node(int32_t n) const { return graph_.nodes()[at(n)]; }
  // Whether a node can be made anew in a stage: of data, a view, or of parameters that are at hand there.
  bool is_made_anew(int32_t n, int stage) const {
    if (stage_[at(n)] == kFree || node(n).op->traits.view) return true;
    return of_weights_[at(n)] && std::ranges::all_of(node(n).inputs, [&](Value input) {
             const int32_t producer = graph_.producer(input);
             return producer >= 0 ? is_made_anew(producer, stage) : has_input(input, stage);
           });
  }
  // Of a parameter, or of what receives its gradient; kFree for data.
  int of_input(Value input) const { return of_input_[static_cast<size_t>(graph_.output_index(input))]; }

 private:
  static size_t at(int32_t n) { return static_cast<size_t>(n); }

  int stage_of(const GraphInput& input) const {
    const std::string_view name = graph_.name(input.value);
    if (is_param(input.role)) return map_.stage_of(name);
    if (input.role == Role::kGrad) return map_.stage_of(name.substr(grad_name("").size()));
    return kFree;
  }

  bool has_input(Value input, int stage) const {
    const int of = of_input(input);
    if (of == kFree || of == stage) return true;
    const auto copies = map_.copies.find(graph_.name(input));
    return copies != map_.copies.end() && copies->second.contains(stage);
  }

  int forward_stage(int32_t n) const {
    int stage = kFree;
    for (const Value input : node(n).inputs)
      stage =
          std::max(stage, graph_.producer(input) < 0 ? of_input(input) : stage_[at(graph_.producer(input))]);
    return stage;
  }

  // In which stages a forward value is at hand: where it is made, and where forward reads it.
  void find_readers() {
    here_.resize(static_cast<size_t>(graph_.value_count()));
    for (int32_t n = 0; n <= loss_; ++n) {
      for (const Value output : node(n).outputs) here_[at(output.id)].insert(stage(n));
      if (stage(n) == kFree) continue;
      for (const Value input : node(n).inputs) here_[at(input.id)].insert(stage(n));
    }
  }

  // What makes a gradient goes where the gradient is, whether it is written or added to what is there.
  void pin(const GraphOutput& output) {
    const int32_t producer = graph_.producer(output.value);
    if (producer <= loss_) return;
    const int stage = of_input(output.target);
    pinned_[producer] = stage;
    const std::vector<Value>& terms = node(producer).inputs;
    if (node(producer).op->name != "add" || std::ranges::find(terms, output.target) == terms.end()) return;
    for (const Value term : terms)
      if (graph_.producer(term) > loss_) pinned_[graph_.producer(term)] = stage;
  }

  int backward_stage(int32_t n) const {
    int highest = map_.stages - 1;
    bool free = true;
    std::vector<const std::set<int>*> within;
    for (const Value input : node(n).inputs) {
      const int32_t producer = graph_.producer(input);
      const int of = producer < 0 ? of_input(input) : stage_[at(producer)];
      if (of == kFree) continue;
      free = false;
      if (producer > loss_)
        highest = std::min(highest, of);
      else if (producer < 0 && graph_.role(input) == Role::kGrad)
        return of;
      else
        within.push_back(&here_[at(input.id)]);
    }
    if (free) return kFree;
    if (const auto found = pinned_.find(n); found != pinned_.end()) return std::min(highest, found->second);
    for (int stage = highest; stage >= 0; --stage)
      if (std::ranges::all_of(within, [&](const std::set<int>* one) { return one->contains(stage); }))
        return stage;
    return highest;
  }

  const Graph& graph_;
  StageMap map_;
  int32_t loss_;
  std::vector<int> of_input_;  // per input
  std::vector<int> stage_;     // per node
  std::vector<bool> of_weights_;
  std::vector<std::set<int>> here_;
  std::map<int32_t, int> pinned_;
};

// Some nodes of a graph, with those that are made anew for them, and the values that come from elsewhere.
class Part {
 public:
  Part(const Graph& graph, const Assignment& stages, int stage, std::vector<bool> own)
      : graph_(graph), stages_(stages), stage_(stage), own_(std::move(own)), needed_(own_) {
    for (auto n = static_cast<int32_t>(own_.size()) - 1; n >= 0; --n)
      if (needed_[static_cast<size_t>(n)])
        for (const Value input : stages_.node(n).inputs) need(input);
  }

  // A value that this part gives: made here, or made anew.
  void need(Value value) {
    const int32_t producer = graph_.producer(value);
    if (producer < 0 || needed_[static_cast<size_t>(producer)]) return;
    if (!stages_.is_made_anew(producer, stage_)) {
      external_.insert(value.id);
      return;
    }
    needed_[static_cast<size_t>(producer)] = true;
    for (const Value input : stages_.node(producer).inputs) need(input);
  }

  bool makes(int32_t n) const { return own_[static_cast<size_t>(n)]; }
  const std::set<int32_t>& external() const { return external_; }

  struct Output {
    Value value;
    std::string target;  // an input of the graph; empty: the value's slot
  };
  Graph build(const std::string& name, const std::vector<Output>& outputs) const {
    std::set<int32_t> used;
    for (int32_t n = 0; n < static_cast<int32_t>(needed_.size()); ++n)
      if (needed_[static_cast<size_t>(n)])
        for (const Value input : stages_.node(n).inputs) used.insert(input.id);
    for (const Output& output : outputs) {
      used.insert(output.value.id);
      if (!output.target.empty()) used.insert(graph_.find(output.target).id);
    }
    Rewriter rewriter(graph_, [&](Value input) { return used.contains(input.id); });
    Graph& part = rewriter.graph();
    part.rename_graph(name);
    for (const int32_t id : external_)
      rewriter.map({id}, part.add_input(graph_.name({id}), graph_.type({id})));
    for (int32_t n = 0; n < static_cast<int32_t>(needed_.size()); ++n)
      if (needed_[static_cast<size_t>(n)]) rewriter.copy(stages_.node(n));
    for (const Output& output : outputs) {
      const Value value = rewriter.mapped(output.value);
      const Value target = output.target.empty() ? part.add_input(slot_name(graph_.name(output.value)),
                                                                  part.type(value), Role::kState)
                                                 : rewriter.mapped(graph_.find(output.target));
      part.add_update(target, value);
    }
    return part;
  }

 private:
  const Graph& graph_;
  const Assignment& stages_;
  int stage_;
  std::vector<bool> own_, needed_;
  std::set<int32_t> external_;  // by id, which is the order of the graph
};

// One graph in parts, and what these need of each other.
class Cut {
 public:
  Cut(const Graph& graph, const StageMap& map, bool apart)
      : graph_(graph), stages_(graph, map), count_(map.stages), apart_(apart) {
    for (int stage = 0; stage < count_; ++stage) {
      forward_.emplace_back(graph, stages_, stage, nodes([&](int32_t n) {
                              return stages_.is_forward(n) && stages_.stage(n) == stage;
                            }));
      backward_.emplace_back(graph, stages_, stage, nodes([&](int32_t n) {
                               return !stages_.is_forward(n) && stages_.stage(n) == stage;
                             }));
    }
    for (const GraphOutput& output : graph.outputs())
      if (output.target.valid() && output.value != output.target)
        gradients_.push_back({output.value, graph.name(output.target)});
    for (size_t i = 0; i < 2; ++i) forward_.back().need(graph.outputs()[i].value);
    for (const Part::Output& gradient : gradients_) backward_[at(owner(gradient))].need(gradient.value);
    if (apart) take_apart();
    for (int stage = 0; stage < count_; ++stage) find_needs(stage);
  }

  const std::vector<StageTransfer>& transfers() const { return transfers_; }
  // In the order of the graph, what forward of a stage makes for others.
  std::set<int32_t> made_forward(int stage) const {
    const auto found = given_forward_.find(stage);
    return found == given_forward_.end() ? std::set<int32_t>() : found->second;
  }

  Graph forward(int stage, const std::set<std::string>& given) const {
    std::vector<Part::Output> outputs;
    for (const std::string& name : given) {
      const Value value = graph_.find(name);
      LOCKSTEP_CHECK(value.valid(), "forward makes no {}", name);
      outputs.push_back({value, ""});
    }
    return forward_[at(stage)].build(fmt::format("{}.stage{}.forward", graph_.name(), stage), outputs);
  }

  Graph backward(int stage) const {
    std::vector<Part::Output> outputs;
    if (const auto given = given_backward_.find(stage); given != given_backward_.end())
      for (const int32_t id : given->second) outputs.push_back({{id}, ""});
    if (!apart_) add_gradients(stage, outputs);
    return backward_[at(stage)].build(fmt::format("{}.stage{}.backward", graph_.name(), stage), outputs);
  }

  Graph weights(int stage) const {
    std::vector<Part::Output> outputs;
    add_gradients(stage, outputs);
    return weights_[at(stage)].build(fmt::format("{}.stage{}.weights", graph_.name(), stage), outputs);
  }

  // All values of a stage's slot.
  std::set<int32_t> slot(int stage) const {
    std::set<int32_t> all;
    for (const std::vector<Part>* parts : {&forward_, &backward_, &weights_})
      if (!parts->empty())
        all.insert((*parts)[at(stage)].external().begin(), (*parts)[at(stage)].external().end());
    for (const auto* given : {&given_forward_, &given_backward_})
      if (const auto found = given->find(stage); found != given->end())
        all.insert(found->second.begin(), found->second.end());
    return all;
  }

  const Graph& graph() const { return graph_; }

 private:
  static size_t at(int stage) { return static_cast<size_t>(stage); }
  template <typename Is>
  std::vector<bool> nodes(const Is& is) const {
    std::vector<bool> own(graph_.nodes().size(), false);
    for (size_t n = 0; n < own.size(); ++n) own[n] = is(static_cast<int32_t>(n));
    return own;
  }
  int owner(const Part::Output& gradient) const { return stages_.of_input(graph_.find(gradient.target)); }
  void add_gradients(int stage, std::vector<Part::Output>& outputs) const {
    for (const Part::Output& gradient : gradients_)
      if (owner(gradient) == stage) outputs.push_back(gradient);
  }

  // What a lower stage needs is made first; all else is left for later. Nothing waits for the first stage,
  // which leaves all of it.
  void take_apart() {
    std::vector<Part> first;
    for (int stage = 0; stage < count_; ++stage) {
      std::vector<bool> wanted(graph_.nodes().size(), false);
      for (int lower = 0; lower < stage; ++lower)
        for (const int32_t id : backward_[at(lower)].external())
          if (const int32_t producer = graph_.producer({id});
              !stages_.is_forward(producer) && stages_.stage(producer) == stage)
            wanted[static_cast<size_t>(producer)] = true;
      for (auto n = static_cast<int32_t>(wanted.size()) - 1; n >= 0; --n) {
        if (!wanted[static_cast<size_t>(n)]) continue;
        for (const Value input : stages_.node(n).inputs) {
          const int32_t producer = graph_.producer(input);
          if (producer >= 0 && backward_[at(stage)].makes(producer))
            wanted[static_cast<size_t>(producer)] = true;
          if (producer < 0 && graph_.role(input) == Role::kGrad)
            throw UserError(
                "strategy.schedule zero-bubble: {} makes gradients of weights and of inputs at once; use "
                "1f1b",
                graph_.name(stages_.node(n).outputs[0]));
        }
      }
      weights_.emplace_back(graph_, stages_, stage, nodes([&](int32_t n) {
                              return backward_[at(stage)].makes(n) && !wanted[static_cast<size_t>(n)];
                            }));
      for (const Part::Output& gradient : gradients_)
        if (owner(gradient) == stage) weights_.back().need(gradient.value);
      first.emplace_back(graph_, stages_, stage, wanted);
    }
    backward_ = std::move(first);
  }

  void find_needs(int stage) {
    for (const Part* part :
         {&forward_[at(stage)], &backward_[at(stage)], apart_ ? &weights_[at(stage)] : nullptr}) {
      if (part == nullptr) continue;
      for (const int32_t id : part->external()) {
        const int32_t producer = graph_.producer({id});
        const int from = stages_.stage(producer);
        const bool backward = !stages_.is_forward(producer);
        LOCKSTEP_CHECK(from <= stage || part != &forward_[at(stage)], "{} of stage {} is needed in stage {}",
                       graph_.name({id}), from, stage);
        LOCKSTEP_CHECK(from >= stage || !backward, "{} of stage {} is needed in stage {}", graph_.name({id}),
                       from, stage);
        (backward ? given_backward_ : given_forward_)[from].insert(id);
        // What a lower stage needs of forward (for the gradient of a tied weight) goes there with backward.
        const StageTransfer transfer{graph_.name({id}), graph_.type({id}), from, stage, from > stage};
        if (from != stage && std::ranges::find(transfers_, transfer) == transfers_.end())
          transfers_.push_back(transfer);
      }
    }
  }

  const Graph& graph_;
  Assignment stages_;
  int count_;
  bool apart_;
  std::vector<Part> forward_, backward_, weights_;
  std::vector<Part::Output> gradients_;
  std::map<int, std::set<int32_t>> given_forward_, given_backward_;
  std::vector<StageTransfer> transfers_;
};

StageGraphs graphs_of(const std::vector<Cut>& cuts, int stage, bool last, bool apart) {
  const Graph& first = cuts[0].graph();
  std::set<std::string> given;  // of forward
  std::map<std::string, Type> slot;
  for (const Cut& cut : cuts) {
    for (const int32_t id : cut.slot(stage)) slot.emplace(cut.graph().name({id}), cut.graph().type({id}));
    for (const int32_t id : cut.made_forward(stage)) given.insert(cut.graph().name({id}));
  }
  if (last)
    for (size_t i = 0; i < 2; ++i) {
      const Value value = first.outputs()[i].value;  // loss and count
      given.insert(first.name(value));
      slot.emplace(first.name(value), first.type(value));
    }
  StageGraphs one{cuts[0].forward(stage, given), {}, {}, {}};
  for (const Cut& cut : cuts) {
    one.backward.push_back(cut.backward(stage));
    if (apart) one.weights.push_back(cut.weights(stage));
  }
  for (const auto& [name, type] : slot) one.slot.push_back({name, type});
  return one;
}

}  // namespace

StageCut::StageCut(const std::vector<const Graph*>& graphs, const StageMap& map, bool apart)
    : ops_(&graphs[0]->ops()) {
  const auto cuts = std::make_shared<std::vector<Cut>>();
  cuts->reserve(graphs.size());
  for (const Graph* graph : graphs) cuts->emplace_back(*graph, map, apart);
  transfers_ = cuts->front().transfers();
  for (const Cut& cut : *cuts)
    for (const StageTransfer& transfer : cut.transfers())
      if (std::ranges::find(transfers_, transfer) == transfers_.end())
        throw InternalError("{} is sent between stages by one graph of a model alone", transfer.value);
  const Graph& first = *graphs[0];
  loss_ = first.name(first.outputs()[0].value);
  count_ = first.name(first.outputs()[1].value);
  make_ = [cuts, last = map.stages - 1, apart](int stage) {
    return graphs_of(*cuts, stage, stage == last, apart);
  };
}

}  // namespace lockstep
