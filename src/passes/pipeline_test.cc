#include "passes/pipeline.h"

#include <map>

#include "base/error.h"
#include "passes/live_bytes.h"
#include "passes/rewrite_case.h"

namespace lockstep::testing {
namespace {

constexpr const char* kNet =
    R"(graph net(x: f32[8,16], w: f32[16,32] @param, b: f32[32] @param, u: f32[32,4] @param) {
  h = matmul(x, w)
  bb = broadcast(b) {shape=[8,32]}
  z = add(h, bb)
  m = checkpoint(z)
  a = tanh(m)
  y = matmul(a, u)
  n = checkpoint(y)
  e = mul(n, n)
  loss = sum(e)
  return loss
})";

std::vector<RefTensor> values_with(const PassOptions& options) {
  const Graph graph = run_passes(graph_of(kNet), options);
  return interpret(graph, some_inputs(graph), {.round = true});
}

TEST(Pipeline, EveryRecomputePolicyGivesTheSameValues) {
  const auto want = values_with({});
  for (const Recompute policy : {Recompute::kCheap, Recompute::kBlock}) {
    PassOptions options;
    options.recompute = policy;
    const auto got = values_with(options);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(got[i].data, want[i].data) << name_of(policy) << ", output " << i;
  }
}

TEST(Pipeline, DisablingAPassThatKeepsArithmeticChangesNoValue) {
  const auto want = values_with({});
  for (const Pass& pass : all_passes()) {
    if (pass.changes_arithmetic) continue;
    PassOptions options;
    options.disabled = {std::string(pass.name)};
    const auto got = values_with(options);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(got[i].data, want[i].data) << pass.name << ", output " << i;
  }
}

TEST(Pipeline, StatisticsAreSummedWhereGradientsAre) {
  const Graph graph = graph_of(
      "graph f(x: f32[4,3], w: f32[3] @param, b: f32[3] @param, s: f32[3] @statistic) {\n"
      "  y, mean, rstd, var = batch_norm(x, w, b)  loss = sum(y)  return loss, s <- var }");
  PassOptions options;
  const Graph writes = run_passes(graph, options);
  options.accumulate_gradients = true;
  const Graph adds = run_passes(graph, options);
  const RefTensors inputs = some_inputs(writes);
  const RefTensor written = interpret(writes, inputs)[1];
  const RefTensor added = interpret(adds, inputs)[1];
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(added[i], inputs.at("s")[i] + written[i]);
}

TEST(Pipeline, NothingMergesWhatRecomputeMade) {
  // The one pass that could undo recomputation stands before it.
  std::map<std::string_view, int> position;
  int next = 0;
  for (const Pass& pass : all_passes()) position[pass.name] = next++;
  EXPECT_LT(position.at("cse"), position.at("recompute"));
  EXPECT_LT(position.at("recompute"), position.at("schedule"));
}

// A stack of layers whose activation functions are cheap to run again.
std::string stack_of_layers(int layers) {
  std::string parameters;
  std::string body;
  for (int i = 0; i < layers; ++i) {
    parameters += fmt::format(", w{}: f32[64,64] @param, b{}: f32[64] @param", i, i);
    body += fmt::format(
        "m{0} = checkpoint(x{0})  h{0} = matmul(m{0}, w{0})  c{0} = broadcast(b{0}) {{shape=[64,64]}}\n", i);
    body += fmt::format("z{0} = add(h{0}, c{0})  g{0} = gelu(z{0})  x{1} = add(m{0}, g{0})\n", i, i + 1);
  }
  return fmt::format("graph stack(x0: f32[64,64]{}) {{\n{}s = mul(x{}, x{})  loss = sum(s)  return loss }}",
                     parameters, body, layers, layers);
}

TEST(Pipeline, PatternsAndFusionLeaveRecomputedValuesInBackward) {
  std::map<Recompute, int64_t> peak;
  for (const Recompute policy : {Recompute::kNone, Recompute::kCheap, Recompute::kBlock}) {
    PassOptions options;
    options.recompute = policy;
    const Graph graph = run_passes(graph_of(stack_of_layers(8)), options);
    peak[policy] = peak_live_bytes(graph);
  }
  EXPECT_LT(peak[Recompute::kCheap], peak[Recompute::kNone]);
  EXPECT_LT(peak[Recompute::kBlock], peak[Recompute::kCheap]);
}

TEST(Pipeline, StopsDumpsAndTimesByName) {
  PassOptions options;
  options.stop_after = "cse";
  options.dump_after = {"autodiff", "cse", "schedule"};
  std::vector<std::string> dumped;
  options.dump = [&](std::string_view pass, const Graph&) { dumped.emplace_back(pass); };
  std::vector<PassTiming> timings;
  run_passes(graph_of(kNet), options, &timings);
  EXPECT_EQ(dumped, (std::vector<std::string>{"autodiff", "cse"}));
  ASSERT_FALSE(timings.empty());
  EXPECT_EQ(timings.back().name, "cse");
}

TEST(Pipeline, AnUnknownPassIsAnErrorWithTheNearestName) {
  PassOptions options;
  options.disabled = {"scheduel"};
  try {
    run_passes(graph_of(kNet), options);
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("schedule"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lockstep::testing
