// Collectives in a plan: what a transfer reads and writes is left alone until it is done, and a run without
// their group is refused.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text.h"
#include "ops/registry.h"
#include "runtime/compile.h"

namespace lockstep {
namespace {

// b and c can be made while a is on its way.
constexpr std::string_view kText = R"(graph f(x: f32[64], u: f32[64], out: f32[64] @state) {
  a = neg(x)
  y = all_reduce(a) {group="data", size=4}
  b = exp(u)
  c = sum(b) {axes=[0], keep=true}
  d = broadcast(c) {shape=[64]}
  e = add(y, d)
  z = all_reduce(e) {group="data", size=4}
  return d, out <- z
})";

PassOptions no_autodiff() {
  PassOptions options;
  options.disabled = {"autodiff"};
  return options;
}

Graph parsed() { return parse_graph(kText, all_ops()); }

bool overlap(const Plan& plan, Value a, Value b) {
  const Location& x = plan.locations[static_cast<size_t>(a.id)];
  const Location& y = plan.locations[static_cast<size_t>(b.id)];
  return x.input == y.input && x.offset < y.offset + plan.graph.type(b).bytes() &&
         y.offset < x.offset + plan.graph.type(a).bytes();
}

TEST(CollectivePlan, NothingOverwritesATransferInFlight) {
  const auto backend = make_null_backend();
  const auto executable = compile(parsed(), *backend, no_autodiff());
  const Plan& plan = executable->plan();
  const Value a = plan.graph.find("a"), started = plan.graph.find("y_start"), y = plan.graph.find("y");
  EXPECT_TRUE(overlap(plan, started, y));
  int meanwhile = 0;
  for (int32_t n = plan.graph.producer(started) + 1; n < plan.graph.producer(y); ++n, ++meanwhile)
    for (const Value made : plan.graph.nodes()[static_cast<size_t>(n)].outputs) {
      EXPECT_FALSE(overlap(plan, made, a)) << plan.graph.name(made);
      EXPECT_FALSE(overlap(plan, made, y)) << plan.graph.name(made);
    }
  EXPECT_GE(meanwhile, 1);
}

TEST(CollectivePlan, AnUpdateIsReceivedInPlace) {
  const auto backend = make_null_backend();
  const auto executable = compile(parsed(), *backend, no_autodiff());
  const Plan& plan = executable->plan();
  const Location& location = plan.locations[static_cast<size_t>(plan.graph.find("z_start").id)];
  EXPECT_EQ(location.input, plan.graph.output_index(plan.graph.find("out")));
  EXPECT_TRUE(plan.copies.empty());
}

TEST(CollectivePlan, WaitingIsAStepOfItsOwn) {
  const auto backend = make_null_backend();
  const auto executable = compile(parsed(), *backend, no_autodiff());
  const Plan& plan = executable->plan();
  int waits = 0;
  for (const PlanStep& step : plan.steps) waits += step.kernel == "group.all_reduce_done" ? 1 : 0;
  EXPECT_EQ(waits, 2);
}

TEST(CollectivePlan, TransfersUnderWayTogetherHavePlacesOfTheirOwn) {
  const auto backend = make_null_backend();
  const Graph graph = parse_graph(R"(graph f(x: f32[64], u: f32[32]) {
    a_start = all_reduce_start(x) {group="data", size=4}
    b_start = all_reduce_start(u) {group="data", size=4}
    a = all_reduce_done(a_start, x)
    b = all_reduce_done(b_start, u)
    c_start = all_reduce_start(b) {group="data", size=4}
    c = all_reduce_done(c_start, b)
    return a, c
  })",
                                  all_ops());
  const Plan plan = make_plan(graph, *backend);
  const auto& transfers = plan.transfers.transfers;
  ASSERT_EQ(transfers.size(), 3U);
  EXPECT_TRUE(transfers[1].offset >= 256 || transfers[0].offset >= 128);
  EXPECT_FALSE(transfers[0].alone);
  EXPECT_TRUE(transfers[2].alone);
  EXPECT_EQ(plan.transfers.buffers.at("data"), 256 + 128);
  EXPECT_EQ(plan.memory.communication, 256 + 128);
}

TEST(CollectivePlan, WholeCollectivesAreRefused) {
  const auto backend = make_null_backend();
  EXPECT_THROW(make_plan(parsed(), *backend), UserError);
}

TEST(CollectivePlan, ARunNeedsTheGroup) {
  const auto backend = make_cpu_backend(1);
  const auto executable = compile(parsed(), *backend, no_autodiff());
  std::vector<float> memory(64);
  for (const char* input : {"x", "u", "out"}) executable->bind(input, memory.data());
  try {
    executable->run();
    FAIL() << "no error";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("no group data is bound"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lockstep
