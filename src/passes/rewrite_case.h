// Tests of passes: a text graph in, the expected text beside it, and equal values from the interpreter.
#pragma once
#include <gtest/gtest.h>

#include <string_view>

#include "graph/interpreter.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "ops/registry.h"

namespace lockstep::testing {

inline Graph graph_of(std::string_view text) { return parse_graph(text, all_ops()); }

// Fixed values that differ between inputs and elements; integers are small and not negative.
inline RefTensors some_inputs(const Graph& graph) {
  RefTensors inputs;
  uint64_t state = 12345;
  for (const GraphInput& input : graph.inputs()) {
    RefTensor tensor(graph.type(input.value));
    for (double& x : tensor.data) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const double uniform = static_cast<double>(state >> 40) / static_cast<double>(1 << 24);
      x = is_floating(tensor.type.dtype) ? round_to(tensor.type.dtype, 2 * uniform - 1)
                                         : std::floor(3 * uniform);
    }
    inputs[graph.name(input.value)] = std::move(tensor);
  }
  return inputs;
}

// The pass turns `before` into exactly `after` (compared as printed), and both compute the same values.
template <typename Pass>
void expect_rewrite(const Pass& pass, std::string_view before, std::string_view after, double tolerance = 0) {
  const Graph source = graph_of(before);
  const Graph result = pass(source);
  verify(result, Stage::kScheduled);
  EXPECT_EQ(to_text(result), to_text(graph_of(after)));
  const RefTensors inputs = some_inputs(source);
  const auto want = interpret(source, inputs, {.round = true});
  const auto got = interpret(result, inputs, {.round = true});
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    for (int64_t k = 0; k < want[i].numel(); ++k)
      ASSERT_NEAR(got[i][k], want[i][k], tolerance) << "output " << i << ", element " << k;
}

}  // namespace lockstep::testing
