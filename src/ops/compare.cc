// compare(a, b) {op}: true where a stands in the given order to b. IEEE: with a NaN only "ne" holds.
#include <algorithm>
#include <array>

#include "ops/pointwise.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 6> kOrders = {"eq", "ne", "lt", "le", "gt", "ge"};

bool holds(const std::string& order, double a, double b) {
  if (order == "eq") return a == b;
  if (order == "ne") return a != b;
  if (order == "lt") return a < b;
  if (order == "le") return a <= b;
  if (order == "gt") return a > b;
  return a >= b;
}

std::vector<Type> infer(const InferContext& c) {
  const std::string& order = c.attributes().text("op");
  if (std::find(kOrders.begin(), kOrders.end(), order) == kOrders.end())
    c.fail("op is \"{}\"; write one of {}", order, fmt::join(kOrders, ", "));
  c.require_same_type(1, 0);
  return {{DType::kBool, c.shape(0)}};
}

}  // namespace

OpDef compare_op() {
  OpDef def = make_pointwise({
      .name = "compare",
      .summary = "true where a stands in the given order to b",
      .operands = 2,
      .scalar = [](std::span<const double> x,
                   const Attributes& a) { return holds(a.text("op"), x[0], x[1]) ? 1.0 : 0.0; },
      .gradient = nullptr,
      .attributes = {{"op", std::string(), "eq, ne, lt, le, gt or ge", true}},
      .infer = infer,
  });
  def.gradient_is_zero = true;
  def.inplace = {};  // the result's elements are narrower than the operands'
  return def;
}

}  // namespace lockstep
