// Every sharding rule of every node in the op cases, forward and backward: the op on the parts of two or
// three ranks, put together as the rule says, gives what it gives on whole operands.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/text.h"
#include "ops/op_driver.h"
#include "ops/registry.h"

namespace lockstep::testing {
namespace {

using Kind = Placement::Kind;

// All values of a graph, by their number.
std::vector<RefTensor> all_values(const Graph& graph, const RefTensors& inputs) {
  Graph open = graph;
  open.clear_outputs();
  for (int32_t id = 0; id < graph.value_count(); ++id) open.add_output(Value{id});
  return interpret(open, inputs);
}

bool can_share(const Shape& shape, Placement placement, int64_t ranks) {
  return placement.kind != Kind::kSplit || shape[placement.axis] % ranks == 0;
}

Type local_type(Type type, Placement placement, int64_t ranks) {
  if (placement.kind == Kind::kSplit)
    type.shape = type.shape.with(placement.axis, type.shape[placement.axis] / ranks);
  return type;
}

// Calls body(element of the whole, element of the part) for rank's part of a split tensor.
template <typename Body>
void for_part(const Shape& whole, int axis, int64_t ranks, int64_t rank, const Body& body) {
  const int64_t inner = whole.product(axis, whole.rank()) / ranks;
  for (int64_t outer = 0; outer < whole.product(0, axis); ++outer)
    for (int64_t i = 0; i < inner; ++i) body((outer * ranks + rank) * inner + i, outer * inner + i);
}

// What a rank has of a value; partial sums of several ranks are unequal terms of it.
RefTensor part_of(const RefTensor& whole, Placement placement, int64_t ranks, int64_t rank) {
  RefTensor part(local_type(whole.type, placement, ranks));
  if (placement.kind == Kind::kSplit) {
    for_part(whole.shape(), placement.axis, ranks, rank, [&](int64_t w, int64_t p) { part[p] = whole[w]; });
    return part;
  }
  part = whole;
  if (placement.kind == Kind::kPartial)
    for (double& x : part.data) x *= rank == 0 ? 1.25 : -0.25 / static_cast<double>(ranks - 1);
  return part;
}

std::string difference(double got, double want, double scale) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return {};
  if (std::abs(got - want) <= 1e-9 * scale) return {};
  return fmt::format("{} instead of {}", got, want);
}

// Empty when the results of all ranks make up the whole.
std::string compare_parts(const RefTensor& whole, Placement placement, const std::vector<RefTensor>& parts) {
  const auto ranks = static_cast<int64_t>(parts.size());
  double scale = 1;
  for (const double x : whole.data)
    if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
  std::string worst;
  RefTensor sum(whole.type);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const RefTensor& part = parts[static_cast<size_t>(rank)];
    const auto check = [&](int64_t w, int64_t p) {
      if (const std::string text = difference(part[p], whole[w], scale); !text.empty()) worst = text;
    };
    if (placement.kind == Kind::kSplit) for_part(whole.shape(), placement.axis, ranks, rank, check);
    for (int64_t i = 0; placement.kind == Kind::kReplicate && i < whole.numel(); ++i) check(i, i);
    for (int64_t i = 0; placement.kind == Kind::kPartial && i < whole.numel(); ++i) sum[i] += part[i];
  }
  for (int64_t i = 0; placement.kind == Kind::kPartial && i < whole.numel(); ++i)
    if (const std::string text = difference(sum[i], whole[i], scale); !text.empty()) worst = text;
  return worst;
}

class RuleCheck {
 public:
  RuleCheck(const Graph& graph, const Node& node, const std::vector<RefTensor>& values)
      : graph_(graph), node_(node), values_(values) {}

  bool applies(const ShardingSignature& signature, int64_t ranks) const {
    bool possible = true;
    for (size_t i = 0; i < node_.inputs.size(); ++i)
      possible &= can_share(graph_.type(node_.inputs[i]).shape, signature.inputs[i], ranks);
    for (size_t i = 0; i < node_.outputs.size(); ++i)
      possible &= can_share(graph_.type(node_.outputs[i]).shape, signature.outputs[i], ranks);
    return possible;
  }

  // Empty when the rule holds.
  std::string run(const ShardingSignature& signature, int64_t ranks) const {
    try {
      return run_ranks(signature, ranks);
    } catch (const UserError& error) {
      return error.what();
    }
  }

 private:
  std::string run_ranks(const ShardingSignature& signature, int64_t ranks) const {
    std::vector<std::vector<RefTensor>> results(node_.outputs.size());
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const std::vector<RefTensor> local = run_rank(signature, ranks, rank);
      for (size_t i = 0; i < local.size(); ++i) results[i].push_back(local[i]);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string worst =
          compare_parts(values_[static_cast<size_t>(node_.outputs[i].id)], signature.outputs[i], results[i]);
      if (!worst.empty()) return fmt::format("result {}: {}", i, worst);
    }
    return {};
  }

  std::vector<RefTensor> run_rank(const ShardingSignature& signature, int64_t ranks, int64_t rank) const {
    Graph local(graph_.ops(), "local");
    RefTensors inputs;
    std::vector<Value> operands;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const std::string name = fmt::format("x{}", i);
      const RefTensor& whole = values_[static_cast<size_t>(node_.inputs[i].id)];
      inputs[name] = part_of(whole, signature.inputs[i], ranks, rank);
      operands.push_back(local.add_input(name, inputs[name].type));
    }
    Attributes attributes = node_.attributes;
    const Type first = local_type(graph_.type(node_.outputs[0]), signature.outputs[0], ranks);
    if (attributes.find("shape") != nullptr)
      attributes.set("shape", std::vector<int64_t>(first.shape.begin(), first.shape.end()));
    const std::vector<Value> results = local.emit_all(*node_.op, operands, attributes);
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(local.type(results[i]),
                local_type(graph_.type(node_.outputs[i]), signature.outputs[i], ranks))
          << to_text(graph_, node_) << " " << to_string(signature);
      local.add_output(results[i]);
    }
    return interpret(local, inputs);
  }

  const Graph& graph_;
  const Node& node_;
  const std::vector<RefTensor>& values_;
};

int check_rules(const Graph& graph, const OpCase& op_case) {
  const std::vector<RefTensor> values = all_values(graph, make_inputs(graph, op_case));
  constexpr double kMostFlops = 1e6;  // the interpreter takes seconds for larger ones, which are no different
  int checked = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op->sharding == nullptr || cost_of(graph, node).flops > kMostFlops) continue;
    const RuleCheck check(graph, node, values);
    for (const ShardingSignature& signature : node.op->sharding(graph, node)) {
      EXPECT_EQ(signature.inputs.size(), node.inputs.size()) << to_text(graph, node);
      EXPECT_EQ(signature.outputs.size(), node.outputs.size()) << to_text(graph, node);
      for (const int64_t ranks : {2, 3}) {
        if (!check.applies(signature, ranks)) continue;
        ++checked;
        EXPECT_EQ(check.run(signature, ranks), "") << op_case.label() << ": " << to_text(graph, node) << " "
                                                   << to_string(signature) << " on " << ranks << " ranks";
      }
    }
  }
  return checked;
}

TEST(ShardingRules, PartsMakeUpTheWhole) {
  int checked = 0;
  for (const OpCase& op_case : read_cases(LOCKSTEP_OP_CASES))
    checked += check_rules(case_graph(op_case, op_case.differentiate), op_case);
  EXPECT_GT(checked, 1000);
}

}  // namespace
}  // namespace lockstep::testing
