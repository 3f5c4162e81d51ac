// The IR: a static, typed, single-assignment graph in program order.
//
// Every value has a unique name and a type that is known when its node is made: emit() checks the operands
// with the op's own rule and throws a UserError that names the op, the operands and the fix. Passes do not
// edit a graph, they build a new one (see graph/rewriter.h).
#pragma once
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/attributes.h"
#include "graph/type.h"

namespace lockstep {

struct OpDef;
class OpSet;

// A handle to a value of one graph. A default-made handle stands for "no value" (an absent gradient).
struct Value {
  int32_t id = -1;
  bool valid() const { return id >= 0; }
  bool operator==(const Value&) const = default;
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  Attributes attributes;
};

// What a graph input is for; decides its memory category and who owns its buffer.
enum class Role : uint8_t {
  kInput,
  kParam,
  kFrozen,     // a parameter that is not trained: it has no gradient
  kGrad,       // receives the gradient of a parameter, or is added to
  kState,      // kept from run to run
  kStatistic,  // receives a statistic of the microbatch, which is summed over microbatches as gradients are
};
std::string_view name_of(Role role);

struct GraphInput {
  Value value;
  Role role = Role::kInput;
};

struct GraphOutput {
  Value value;
  // When valid, the result is written into this graph input's buffer: an update in place.
  Value target;
};

class Graph {
 public:
  Graph(const OpSet& ops, std::string name) : ops_(&ops), name_(std::move(name)) {}
  Graph(const Graph& other);
  Graph(Graph&&) = default;
  Graph& operator=(const Graph& other) { return *this = Graph(other); }
  Graph& operator=(Graph&&) = default;
  ~Graph() = default;

  Value add_input(std::string_view name, Type type, Role role = Role::kInput);

  // Makes a node. Attributes that are not given take the op's defaults. `name` names the first output (made
  // unique by a suffix when taken); by default it is derived from the op.
  std::vector<Value> emit_all(std::string_view op, std::span<const Value> inputs,
                              const Attributes& attributes = {}, std::string_view name = {});
  std::vector<Value> emit_all(const OpDef& op, std::span<const Value> inputs,
                              const Attributes& attributes = {}, std::string_view name = {});
  // The same for ops with one result, or where only the first matters.
  Value emit(std::string_view op, std::initializer_list<Value> inputs, const Attributes& attributes = {},
             std::string_view name = {});

  // A node of another graph with its attributes and names, where these are free; `inputs` are this graph's.
  // Its results, until the next node is made.
  std::span<const Value> copy_node(const Graph& from, const Node& node, std::vector<Value> inputs);
  // Room for so many values.
  void reserve(int64_t values) { by_name_.reserve(static_cast<size_t>(values)); }

  void add_output(Value value) { outputs_.push_back({value, {}}); }
  void add_update(Value target, Value value) { outputs_.push_back({value, target}); }

  const OpSet& ops() const { return *ops_; }
  const std::string& name() const { return name_; }
  void rename_graph(std::string name) { name_ = std::move(name); }
  std::span<const GraphInput> inputs() const { return inputs_; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const GraphOutput> outputs() const { return outputs_; }
  void clear_outputs() { outputs_.clear(); }

  int64_t value_count() const { return static_cast<int64_t>(values_.size()); }
  const Type& type(Value value) const { return info(value).type; }
  const std::string& name(Value value) const { return info(value).name; }
  // The node that makes a value, or -1 for a graph input; and which of its outputs it is.
  int32_t producer(Value value) const { return info(value).producer; }
  int32_t output_index(Value value) const { return info(value).output_index; }
  Value find(std::string_view name) const;
  Role role(Value input) const;

  // Renames a value; used by the text parser, which knows the names of all outputs.
  void rename(Value value, std::string_view name);

 private:
  struct ValueInfo {
    Type type;
    std::string name;
    int32_t producer = -1;
    int32_t output_index = 0;
  };
  const ValueInfo& info(Value value) const;
  // `name` gets a suffix where it is taken.
  Value add_value(const Type& type, std::string_view name, int32_t producer, int32_t output_index);

  const OpSet* ops_;
  std::string name_;
  std::vector<GraphInput> inputs_;
  std::vector<Node> nodes_;
  std::vector<GraphOutput> outputs_;
  // A deque, so that types and names handed out by reference stay valid while nodes are added.
  std::deque<ValueInfo> values_;
  std::unordered_map<std::string_view, int32_t> by_name_;  // of the names there
  std::unordered_map<std::string, int32_t> next_suffix_;
};

// "matmul(x: f32[2,3], w: f32[4,5])": how error messages name a node.
std::string describe(const Graph& graph, const OpDef& op, std::span<const Value> inputs);

// For each value, the nodes that read it in program order (a node that reads it twice appears twice).
std::vector<std::vector<int32_t>> users_of(const Graph& graph);

}  // namespace lockstep
