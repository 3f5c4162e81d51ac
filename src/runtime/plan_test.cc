#include "runtime/plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text.h"
#include "ops/registry.h"
#include "runtime/executable.h"

namespace lockstep {
namespace {

Plan plan_of(const char* text, Backend& backend) { return make_plan(parse_graph(text, all_ops()), backend); }

TEST(Plan, ChainsOfPointwiseOpsRunInPlace) {
  const auto backend = make_cpu_backend(1);
  const Plan plan =
      plan_of("graph t(x: f32[1024]) {\n  a = add(x, x)\n  b = mul(a, x)\n  c = add(b, x)\n  return c\n}\n",
              *backend);
  EXPECT_EQ(plan.memory.arena_peak, 4096);
}

TEST(Plan, UpdatesAreWrittenIntoTheirTarget) {
  const auto backend = make_cpu_backend(1);
  const Plan plan =
      plan_of("graph t(w: f32[8] @param, g: f32[8]) {\n  n = add(w, g)\n  return w <- n\n}\n", *backend);
  EXPECT_EQ(plan.locations[static_cast<size_t>(plan.graph.find("n").id)].input, 0);
  EXPECT_TRUE(plan.copies.empty());
}

TEST(Plan, AChainOfInPlaceWorkIsDoneInTheTarget) {
  const auto backend = make_cpu_backend(1);
  const Plan plan = plan_of(
      "graph t(a: f32[8], b: f32[8], grad: f32[8] @grad) {\n  p = add(a, b)\n  q = mul(p, b)\n  return grad "
      "<- q\n}\n",
      *backend);
  EXPECT_EQ(plan.locations[static_cast<size_t>(plan.graph.find("p").id)].input, 2);
  EXPECT_EQ(plan.memory.arena_peak, 0);
}

TEST(Plan, AnUpdateWaitsForTheLastReaderOfItsTarget) {
  const auto backend = make_cpu_backend(1);
  // w is read by the product after n is made, so n may not overwrite it yet.
  Executable executable(plan_of("graph t(w: f32[4] @param, g: f32[4]) {\n  n = add(w, g)\n  p = mul(w, g)\n"
                                "  return p, w <- n\n}\n",
                                *backend),
                        *backend);
  float w[4] = {1, 2, 3, 4};
  float g[4] = {10, 10, 10, 10};
  executable.bind("w", w);
  executable.bind("g", g);
  executable.run();
  EXPECT_EQ(static_cast<float*>(executable.output(0))[3], 40.0f);
  EXPECT_EQ(w[3], 14.0f);
}

TEST(Plan, InputsOfTheCallerAreNotOverwritten) {
  const auto backend = make_cpu_backend(1);
  Executable executable(
      plan_of("graph t(x: f32[4]) {\n  v = reshape(x) {shape=[2,2]}\n  y = add(v, v)\n  return y\n}\n",
              *backend),
      *backend);
  float x[4] = {1, 2, 3, 4};
  executable.bind("x", x);
  executable.run();
  EXPECT_EQ(x[0], 1.0f);
  EXPECT_EQ(static_cast<float*>(executable.output(0))[3], 8.0f);
}

TEST(Plan, NullBackendPlansWithoutMemory) {
  const auto backend = make_null_backend();
  const Plan plan =
      plan_of("graph t(a: f32[1000000,1000000]) {\n  y = matmul(a, a)\n  return y\n}\n", *backend);
  EXPECT_EQ(plan.memory.arena_peak, int64_t{4} * 1000000 * 1000000);
}

TEST(Plan, WhatALibraryHoldsIsCountedOnceForAllKernels) {
  const auto backend = make_cpu_backend(1);
  const Plan one = plan_of("graph t(a: f32[64,64]) {\n  y = matmul(a, a)\n  return y\n}\n", *backend);
  const Plan two =
      plan_of("graph t(a: f32[64,64]) {\n  y = matmul(a, a)\n  z = matmul(y, a)\n  return z\n}\n", *backend);
  EXPECT_GT(one.memory.kernels.shared, 1 << 20);
  EXPECT_EQ(two.memory.kernels.bytes(), one.memory.kernels.bytes());
  EXPECT_EQ(one.memory.planned_peak(),
            one.memory.arena_peak + one.memory.external + one.memory.kernels.bytes());
}

TEST(Plan, AnUnboundInputIsNamed) {
  const auto backend = make_cpu_backend(1);
  Executable executable(plan_of("graph t(x: f32[4]) {\n  y = add(x, x)\n  return y\n}\n", *backend),
                        *backend);
  EXPECT_THROW(executable.run(), InternalError);
}

// When a part is final, the part before it may still be read by others; the one before that may not.
TEST(Plan, OfARegionThatPassesByTwoPartsStayBesideTheOneThatIsMade) {
  const auto backend = make_cpu_backend(1);
  std::string inputs, nodes, results;
  Region region;
  region.bytes = 6 * 4096;
  for (int part = 0; part < 6; ++part) {
    inputs += fmt::format(", g{}: f32[1024] @grad", part);
    nodes += fmt::format("  n{} = add(x, x)\n", part);
    results += fmt::format("{} g{} <- n{}", part == 0 ? "" : ",", part, part);
    region.entries.push_back({fmt::format("g{}", part), part * 4096});
    region.passing.push_back(part * 4096);
  }
  const Plan plan = make_plan(
      parse_graph("graph t(x: f32[1024]" + inputs + ") {\n" + nodes + "  return" + results + "\n}\n",
                  all_ops()),
      *backend, region);
  ASSERT_EQ(plan.region_parts.size(), 6U);
  for (size_t part = 0; part < 6; ++part)
    for (size_t later = part + 1; later < std::min<size_t>(6, part + 3); ++later)
      EXPECT_NE(plan.region_parts[part].at.offset, plan.region_parts[later].at.offset)
          << part << ", " << later;
  EXPECT_EQ(plan.memory.arena_peak, 3 * 4096);
}

}  // namespace
}  // namespace lockstep
