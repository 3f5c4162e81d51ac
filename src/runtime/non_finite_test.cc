#include "runtime/non_finite.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

std::optional<NonFiniteValue> find(const char* text, std::vector<float> x) {
  const auto backend = make_cpu_backend(1);
  Executable executable(make_plan(parse_graph(text, all_ops()), *backend), *backend);
  executable.bind("x", x.data());
  return first_non_finite(executable, *backend);
}

constexpr const char* kChain =
    "graph t(x: f32[3]) {\n  a = exp(x)\n  b = log(a)\n  c = mul(b, b)\n  loss = sum(c)\n  return loss\n}\n";

TEST(NonFinite, NamesTheFirstNodeAndElement) {
  const auto found = find(kChain, {0.0f, 1.0f, 100.0f});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->value, "a");
  EXPECT_EQ(found->op, "exp");
  EXPECT_EQ(found->element, 2);
  EXPECT_FALSE(found->in_backward);
}

TEST(NonFinite, BlamesTheInputWhenItCameIn) {
  const auto found = find(kChain, {0.0f, std::numeric_limits<float>::quiet_NaN(), 1.0f});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->value, "x");
  EXPECT_EQ(found->op, "input");
}

TEST(NonFinite, FindsNothingInGoodNumbers) { EXPECT_FALSE(find(kChain, {0.0f, 1.0f, 2.0f}).has_value()); }

}  // namespace
}  // namespace lockstep
