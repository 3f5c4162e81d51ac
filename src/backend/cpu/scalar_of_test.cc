#include "backend/cpu/scalar_of.h"

#include <gtest/gtest.h>

#include "ops/registry.h"

namespace lockstep::cpu {
namespace {

// The pass `fuse` takes any pointwise op for granted.
TEST(ScalarOf, KnowsEveryPointwiseOp) {
  for (const OpDef& op : all_ops().all()) {
    if (!op.traits.pointwise) continue;
    Graph graph(all_ops(), "g");
    std::vector<Value> inputs;
    for (int i = 0; i < op.min_inputs; ++i) {
      const bool flag = (op.name == "where" && i == 0) || op.name.starts_with("logical");
      inputs.push_back(graph.add_input(fmt::format("a{}", i), {flag ? DType::kBool : DType::kF32, {4}}));
    }
    Attributes attributes;
    if (op.name == "compare") attributes.set("op", std::string("lt"));
    if (op.name == "cast") attributes.set("dtype", DType::kF32);
    graph.emit_all(op, inputs, attributes);
    EXPECT_EQ(refuse_as_tile(graph, graph.nodes()[0]), "") << op.name;
  }
}

}  // namespace
}  // namespace lockstep::cpu
