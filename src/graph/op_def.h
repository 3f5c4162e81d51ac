// OpDef: the contract of one op. Each op is one file in src/ops that fills one of these in.
#pragma once
#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/attributes.h"
#include "graph/graph.h"
#include "graph/ref_tensor.h"
#include "graph/sharding.h"

namespace lockstep {

// How far compilation has come. An op or form that belongs to a later stage is refused by the verifier before
// it.
enum class Stage : uint8_t { kImported, kDifferentiated, kFused, kScheduled };
std::string_view name_of(Stage stage);

struct AttributeDef {
  std::string_view name;
  Attribute default_value;  // also fixes the attribute's kind
  std::string_view doc = {};
  bool required = false;
};

struct Cost {
  double flops = 0;
  double bytes = 0;  // read plus written, each operand once
};

struct Traits {
  bool pointwise = false;  // out[i] depends on in[i] alone (operands already broadcast to the result's shape)
  bool view = false;       // the result is its first operand's bytes under another shape
  bool reduction = false;  // sums over some axes
  bool collective = false;  // talks to other workers: never removed, duplicated or reordered against its kind
  bool recompute_cheap = false;  // memory-bound: cheaper to run again than to keep its result until backward
};

// What `infer` sees: operand types and checked attributes, with errors that name the op and its operands.
class InferContext {
 public:
  InferContext(const Graph& graph, const OpDef& op, std::span<const Value> inputs,
               const Attributes& attributes)
      : graph_(graph), op_(op), inputs_(inputs), attributes_(attributes) {}

  int count() const { return static_cast<int>(inputs_.size()); }
  const Type& type(int operand) const { return graph_.type(inputs_[static_cast<size_t>(operand)]); }
  const Shape& shape(int operand) const { return type(operand).shape; }
  const Attributes& attributes() const { return attributes_; }
  const OpSet& ops() const { return graph_.ops(); }

  // Resolves a possibly negative axis of an operand of the given rank; fails with the legal range.
  int axis(int64_t axis, int rank) const;
  // Throws a UserError that begins with the op and its operands: "matmul(x: f32[2,3], w: f32[4,5]): <what>".
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    fail_with(fmt::format(text, std::forward<Args>(args)...));
  }
  void require_floating(int operand) const;
  void require_same_type(int operand, int as) const;

 private:
  [[noreturn]] void fail_with(const std::string& what) const;
  const Graph& graph_;
  const OpDef& op_;
  std::span<const Value> inputs_;
  const Attributes& attributes_;
};

// What `gradient` sees: the forward node and the gradients of its outputs (invalid = zero). It emits nodes
// into `graph` and returns one value per operand, invalid where there is none.
struct GradientContext {
  Graph& graph;
  Node node;  // a copy: emitting nodes moves the graph's own
  std::vector<Value> output_gradients;
  std::vector<bool> needed;  // per operand: whether anything wants its gradient

  Value in(int operand) const { return node.inputs[static_cast<size_t>(operand)]; }
  Value out(int result) const { return node.outputs[static_cast<size_t>(result)]; }
  Value grad(int result = 0) const { return output_gradients[static_cast<size_t>(result)]; }
  const Type& type(Value value) const { return graph.type(value); }
  const Attributes& attributes() const { return node.attributes; }
};

// What `reference` sees: fp64 operands; it fills the fp64 results, which come sized and zeroed.
struct ReferenceContext {
  std::span<const RefTensor* const> inputs;
  std::span<RefTensor> outputs;
  const Attributes& attributes;

  const RefTensor& in(int operand) const { return *inputs[static_cast<size_t>(operand)]; }
  RefTensor& out(int result = 0) const { return outputs[static_cast<size_t>(result)]; }
};

struct InplacePair {
  int input;
  int output;
};

struct OpDef {
  std::string_view name;
  std::string_view summary;
  std::vector<AttributeDef> attributes = {};
  int min_inputs = 1;
  int max_inputs = 1;  // kVariadic: no limit
  Traits traits = {};
  Stage stage = Stage::kImported;  // the first stage at which the op may appear

  std::vector<Type> (*infer)(const InferContext&) = nullptr;
  // Null where the op has no gradient (integer results, updates).
  std::vector<Value> (*gradient)(GradientContext&) = nullptr;
  // Ops whose gradient is zero everywhere (compare, argmax) say so, instead of looking like ops nobody
  // differentiated.
  bool gradient_is_zero = false;
  // The obvious implementation in fp64. Fused ops leave it null and give `decompose` instead.
  void (*reference)(const ReferenceContext&) = nullptr;
  // Emits the same computation in simpler ops and returns the results: reference and fallback of fused ops.
  std::vector<Value> (*decompose)(Graph&, const Node&, std::span<const Value> inputs) = nullptr;
  // Pointwise ops: the formula on one element.
  double (*scalar)(std::span<const double> arguments, const Attributes&) = nullptr;
  std::vector<ShardingSignature> (*sharding)(const Graph&, const Node&) = nullptr;
  Cost (*cost)(const Graph&, const Node&) = nullptr;  // null: no flops, every operand and result touched once
  // Collectives are split in two before they are scheduled: the op that begins a transfer and the op that
  // waits for it.
  std::string_view start = {};  // of a whole collective: what begins it
  std::string_view done = {};   // of a whole collective and of its start: what waits for it
  bool is_start() const { return start.empty() && !done.empty(); }
  bool is_done() const { return traits.collective && done.empty(); }
  // Every kernel of the op must allow result `output` to share the buffer of operand `input`.
  std::vector<InplacePair> inplace = {};

  static constexpr int kVariadic = 1 << 20;
};

Cost cost_of(const Graph& graph, const Node& node);
double touched_bytes(const Graph& graph, const Node& node);

// All ops of the program by name.
class OpSet {
 public:
  explicit OpSet(std::vector<OpDef> ops);
  // Throws UserError with the nearest known names.
  const OpDef& get(std::string_view name) const;
  const OpDef* find(std::string_view name) const;
  std::span<const OpDef> all() const { return ops_; }

 private:
  std::vector<OpDef> ops_;
  std::unordered_map<std::string_view, const OpDef*> by_name_;
};

}  // namespace lockstep
