#include "passes/bf16.h"

#include <algorithm>
#include <array>

#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "ops/builder.h"
#include "ops/stochastic_rounding.h"

namespace lockstep {
namespace {

// What pays for itself in bf16 on every device that has it.
constexpr std::array<std::string_view, 4> kComputeOps = {"matmul", "conv2d", "attention", "attention_qkv"};
// Ops whose other operands are f32 parameters or statistics beside a first operand (or logits of leaves) of
// any floating type.
constexpr std::array<std::string_view, 6> kFirstOperandOps = {
    "layer_norm", "rms_norm", "batch_norm", "group_norm", "cross_entropy", "cross_entropy_leaves"};
// Losses that compare f32 targets with predictions.
constexpr std::array<std::string_view, 2> kF32Ops = {"bce_with_logits", "mse"};

// Ops that only move elements about: a parameter behind them is rounded before.
constexpr std::array<std::string_view, 3> kMovingOps = {"reshape", "transpose", "broadcast"};

template <size_t N>
bool listed(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Lowering {
 public:
  Lowering(const Graph& old, bool stochastic_rounding)
      : old_(old), rewriter_(old), builder_(rewriter_.graph()) {
    casts_.resize(static_cast<size_t>(old.value_count()));
    if (stochastic_rounding) rounding_ = builder_.input(std::string(kRoundingInput), {DType::kI64, {2}});
  }

  Graph run() && {
    for (const Node& node : old_.nodes()) lower(node);
    return finish();
  }

 private:
  bool is_f32(Value value) const { return builder_.type(value).dtype == DType::kF32; }
  bool is_bf16(Value value) const { return builder_.type(value).dtype == DType::kBF16; }

  void lower(const Node& node) {
    std::vector<Value> inputs = rewriter_.mapped(node.inputs);
    // Rows of a table are widened after they are read, if at all.
    if (node.op->name == "embedding")
      if (const Value stored = widened_from(inputs[0]); stored.valid()) inputs[0] = stored;
    if (listed(kComputeOps, node.op->name)) {
      for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = to_bf16(node.inputs[i], inputs[i]);
    } else if (listed(kF32Ops, node.op->name)) {
      for (Value& input : inputs)
        if (is_bf16(input)) input = builder_.cast(input, DType::kF32);
    } else if (!listed(kFirstOperandOps, node.op->name) &&
               std::any_of(inputs.begin(), inputs.end(), [&](Value v) { return is_bf16(v); })) {
      for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = to_bf16(node.inputs[i], inputs[i]);
    }
    rewriter_.copy(node, inputs);
  }

  // One cast per value, made where it is first needed.
  Value to_bf16(Value old_value, Value value) {
    if (!is_f32(value)) return value;
    if (const Value stored = widened_from(value); stored.valid()) return stored;
    Value& cast = casts_[static_cast<size_t>(old_value.id)];
    if (!cast.valid())
      cast = rounding_.valid() && behind_moves(old_value).valid() ? rounded(old_value)
                                                                  : builder_.cast(value, DType::kBF16);
    return cast;
  }

  // The bf16 value that this one was cast from, or none.
  Value widened_from(Value value) {
    const int32_t producer = rewriter_.graph().producer(value);
    if (producer < 0) return {};
    const Node& node = rewriter_.graph().nodes()[static_cast<size_t>(producer)];
    return node.op->name == "cast" && is_bf16(node.inputs[0]) ? node.inputs[0] : Value{};
  }

  // The parameter that a value is the elements of, or none.
  Value behind_moves(Value value) const {
    for (;;) {
      const int32_t producer = old_.producer(value);
      if (producer < 0) return old_.role(value) == Role::kParam ? value : Value{};
      const Node& node = old_.nodes()[static_cast<size_t>(producer)];
      if (!listed(kMovingOps, node.op->name)) return {};
      value = node.inputs[0];
    }
  }

  Value rounded(Value old_value) {
    Value& cast = casts_[static_cast<size_t>(old_value.id)];
    if (cast.valid()) return cast;
    const int32_t producer = old_.producer(old_value);
    if (producer < 0)
      return cast = builder_.op("round_stochastic", {rewriter_.mapped(old_value), rounding_},
                                {{"key", rounding_key(old_.name(old_value))}});
    const Node& node = old_.nodes()[static_cast<size_t>(producer)];
    return cast = rewriter_.graph().emit(node.op->name, {rounded(node.inputs[0])}, node.attributes);
  }

  Graph finish() {
    Graph& graph = rewriter_.graph();
    for (const GraphOutput& output : old_.outputs()) {
      Value value = rewriter_.mapped(output.value);
      // Callers see the types they asked for.
      if (is_bf16(value) && old_.type(output.value).dtype != DType::kBF16)
        value = builder_.cast(value, DType::kF32);
      if (output.target.valid())
        graph.add_update(rewriter_.mapped(output.target), value);
      else
        graph.add_output(value);
    }
    return std::move(graph);
  }

  const Graph& old_;
  Rewriter rewriter_;
  Builder builder_;
  std::vector<Value> casts_;
  Value rounding_;  // none: to nearest
};

}  // namespace

Graph compute_in_bf16(const Graph& graph, bool stochastic_rounding) {
  return Lowering(graph, stochastic_rounding).run();
}

}  // namespace lockstep
