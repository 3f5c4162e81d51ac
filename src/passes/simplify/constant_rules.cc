// Constants: expressions of constants become constants, where a kernel would give exactly the folded bits.
#include <array>
#include <cmath>

#include "passes/simplify/rule.h"

namespace lockstep::simplification {
namespace {

// Integers beyond 2^53 are not exact in the doubles that constants are held in.
bool representable(DType dtype, double value) {
  switch (dtype) {
    case DType::kI32: return value >= -2147483648.0 && value <= 2147483647.0;
    case DType::kI64: return std::fabs(value) <= 9007199254740992.0;
    case DType::kU8: return value >= 0 && value <= 255;
    default: return true;
  }
}

// Correctly rounded in fp32, so that computing in fp64 and rounding once gives the same bits (fp64 has more
// than twice the digits). exp, tanh and their like are approximated by kernels and stay.
Value fold_pointwise(Simplifier& s, const Candidate& c) {
  if (c.op.scalar == nullptr) return {};
  std::vector<double> arguments;
  for (const Value input : c.inputs) {
    const std::optional<double> value = s.constant_value(input);
    if (!value) return {};
    arguments.push_back(*value);
  }
  const double value = c.op.scalar(arguments, c.attributes);
  if (!representable(c.type.dtype, value)) return {};
  // Integer division is left to the kernels, which define what happens at zero.
  if (!is_floating(c.type.dtype) && c.op.name == "div") return {};
  return s.constant(round_to(c.type.dtype, value), c.type);
}

// A cast, or any op that only moves elements about.
Value fold_filled(Simplifier& s, const Candidate& c) {
  const std::optional<double> value = s.constant_value(c.in(0));
  if (!value || !representable(c.type.dtype, *value)) return {};
  if (!is_floating(c.type.dtype) && !std::isfinite(*value)) return {};
  return s.constant(round_to(c.type.dtype, *value), c.type);
}

Value known_condition(Simplifier& s, const Candidate& c) {
  const std::optional<double> condition = s.constant_value(c.in(0));
  if (!condition) return {};
  return *condition != 0 ? c.in(1) : c.in(2);
}

constexpr std::array kRules = {
    Rule{"add", fold_pointwise},    Rule{"sub", fold_pointwise},    Rule{"mul", fold_pointwise},
    Rule{"div", fold_pointwise},    Rule{"neg", fold_pointwise},    Rule{"abs", fold_pointwise},
    Rule{"sqrt", fold_pointwise},   Rule{"cast", fold_filled},      Rule{"reshape", fold_filled},
    Rule{"broadcast", fold_filled}, Rule{"transpose", fold_filled}, Rule{"slice", fold_filled},
    Rule{"where", known_condition},
};

}  // namespace

std::span<const Rule> constant_rules() { return kRules; }

}  // namespace lockstep::simplification
