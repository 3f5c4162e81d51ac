#include "graph/verifier.h"

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "base/error.h"
#include "graph/text.h"

namespace lockstep {
namespace {

void verify_node(const Graph& graph, size_t index, Stage stage) {
  const Node& node = graph.nodes()[index];
  const auto where = [&] { return to_text(graph, node); };  // takes longer than all the checks
  for (const Value input : node.inputs)
    LOCKSTEP_CHECK(graph.producer(input) < static_cast<int32_t>(index), "an operand comes later: {}",
                   where());
  LOCKSTEP_CHECK(node.op->stage <= stage, "{} belongs to stage {}, the graph is {}: {}", node.op->name,
                 name_of(node.op->stage), name_of(stage), where());
  const std::vector<Type> types = node.op->infer(InferContext(graph, *node.op, node.inputs, node.attributes));
  LOCKSTEP_CHECK(types.size() == node.outputs.size(), "result count: {}", where());
  for (size_t i = 0; i < types.size(); ++i) {
    LOCKSTEP_CHECK(graph.type(node.outputs[i]) == types[i], "result {} is {}, its op says {}: {}", i,
                   to_string(graph.type(node.outputs[i])), to_string(types[i]), where());
    LOCKSTEP_CHECK(graph.producer(node.outputs[i]) == static_cast<int32_t>(index), "producer: {}", where());
  }
}

// Starts and dones come in pairs that nothing else reads, and the transfers of a group end in the order in
// which they began: a communicator that serves them one after another has finished the earlier ones by then.
class TransferCheck {
 public:
  explicit TransferCheck(const Graph& graph) : graph_(graph), users_(users_of(graph)) {}

  void run() {
    for (const Node& node : graph_.nodes()) {
      if (node.op->is_start()) start(node);
      if (node.op->is_done()) done(node);
    }
    for (const GraphOutput& output : graph_.outputs()) {
      const int32_t producer = graph_.producer(output.value);
      LOCKSTEP_CHECK(producer < 0 || !graph_.nodes()[static_cast<size_t>(producer)].op->is_start(),
                     "{} is an output before its transfer is done", graph_.name(output.value));
    }
  }

 private:
  void start(const Node& node) {
    const auto& users = users_[static_cast<size_t>(node.outputs[0].id)];
    LOCKSTEP_CHECK(users.size() == 1, "{} readers instead of one {}: {}", users.size(), node.op->done,
                   to_text(graph_, node));
    const Node& reader = graph_.nodes()[static_cast<size_t>(users[0])];
    LOCKSTEP_CHECK(reader.op->name == node.op->done && reader.inputs[0] == node.outputs[0],
                   "only {} may read {}: {}", node.op->done, graph_.name(node.outputs[0]),
                   to_text(graph_, reader));
    open_[node.attributes.text("group")].push_back(node.outputs[0]);
  }

  void done(const Node& node) {
    const int32_t producer = graph_.producer(node.inputs[0]);
    const Node* started = producer < 0 ? nullptr : &graph_.nodes()[static_cast<size_t>(producer)];
    LOCKSTEP_CHECK(started != nullptr && started->op->done == node.op->name, "{} was not started: {}",
                   graph_.name(node.inputs[0]), to_text(graph_, node));
    LOCKSTEP_CHECK(std::equal(node.inputs.begin() + 1, node.inputs.end(), started->inputs.begin(),
                              started->inputs.end()),
                   "a done reads what its start read: {}", to_text(graph_, node));
    std::deque<Value>& open = open_[started->attributes.text("group")];
    LOCKSTEP_CHECK(open.front() == node.inputs[0], "{} is waited for before {}, which began earlier",
                   graph_.name(node.inputs[0]), graph_.name(open.front()));
    open.pop_front();
  }

  const Graph& graph_;
  std::vector<std::vector<int32_t>> users_;
  std::map<std::string, std::deque<Value>> open_;  // per group: transfers that have begun, oldest first
};

}  // namespace

void verify(const Graph& graph, Stage stage) {
  for (size_t index = 0; index < graph.nodes().size(); ++index) verify_node(graph, index, stage);
  if (stage >= Stage::kScheduled) TransferCheck(graph).run();
  std::vector<bool> written(static_cast<size_t>(graph.value_count()), false);
  for (const GraphOutput& output : graph.outputs()) {
    LOCKSTEP_CHECK(output.value.valid() && output.value.id < graph.value_count(), "an output of {}",
                   graph.name());
    if (!output.target.valid()) continue;
    LOCKSTEP_CHECK(graph.producer(output.target) < 0, "{} is written but is no input",
                   graph.name(output.target));
    LOCKSTEP_CHECK(graph.type(output.target) == graph.type(output.value), "{} is written with another type",
                   graph.name(output.target));
    LOCKSTEP_CHECK(graph.role(output.target) != Role::kFrozen, "{} is frozen but written",
                   graph.name(output.target));
    LOCKSTEP_CHECK(!written[static_cast<size_t>(output.target.id)], "{} is written twice",
                   graph.name(output.target));
    written[static_cast<size_t>(output.target.id)] = true;
  }
  for (const GraphInput& input : graph.inputs())
    LOCKSTEP_CHECK(input.role != Role::kStatistic || written[static_cast<size_t>(input.value.id)],
                   "statistic {} is not written", graph.name(input.value));
}

}  // namespace lockstep
