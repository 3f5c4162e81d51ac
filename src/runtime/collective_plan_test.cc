// Collectives in a plan: what a transfer reads and writes is left alone until it is done, and a backend
// without a communicator says so.
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
  for (const PlanStep& step : plan.steps) waits += step.kernel == "null.all_reduce_done" ? 1 : 0;
  EXPECT_EQ(waits, 2);
}

TEST(CollectivePlan, TheCpuAloneHasNoCommunicator) {
  const auto backend = make_cpu_backend(1);
  try {
    compile(parsed(), *backend, no_autodiff());
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("all_reduce_start needs a communicator"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lockstep
