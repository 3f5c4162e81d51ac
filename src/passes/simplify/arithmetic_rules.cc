// Arithmetic that leaves its operand as it is, or can be had cheaper with the same bits.
#include <array>
#include <cmath>

#include "passes/simplify/rule.h"

namespace lockstep::simplification {
namespace {

bool is_negative_zero(double value) { return value == 0 && std::signbit(value); }

// x + 0 turns -0 into +0, so it may go only where x cannot be -0.
bool never_negative_zero(const Simplifier& s, Value x) {
  if (!is_floating(s.type(x).dtype)) return true;
  if (s.made_by(x, "exp") != nullptr || s.made_by(x, "sigmoid") != nullptr || s.made_by(x, "abs") != nullptr)
    return true;
  if (const Node* product = s.made_by(x, "mul")) return product->inputs[0] == product->inputs[1];
  const std::optional<double> value = s.constant_value(x);
  return value && !is_negative_zero(*value);
}

Value add_zero(Simplifier& s, const Candidate& c) {
  for (const int zero : {0, 1}) {
    const std::optional<double> value = s.constant_value(c.in(zero));
    if (!value || *value != 0) continue;
    const Value x = c.in(1 - zero);
    if (is_negative_zero(*value) || never_negative_zero(s, x)) return x;
  }
  return {};
}

Value add_negated(Simplifier& s, const Candidate& c) {
  if (c.op.name == "sub") {
    const Node* negated = s.made_by(c.in(1), "neg");
    return negated != nullptr ? s.emit("add", {c.in(0), negated->inputs[0]}) : Value{};
  }
  if (const Node* negated = s.made_by(c.in(1), "neg")) return s.emit("sub", {c.in(0), negated->inputs[0]});
  if (const Node* negated = s.made_by(c.in(0), "neg")) return s.emit("sub", {c.in(1), negated->inputs[0]});
  return {};
}

Value sub_zero(Simplifier& s, const Candidate& c) {
  const std::optional<double> value = s.constant_value(c.in(1));
  if (!value || *value != 0) return {};
  return is_negative_zero(*value) && !never_negative_zero(s, c.in(0)) ? Value{} : c.in(0);
}

Value mul_one(Simplifier& s, const Candidate& c) {
  if (s.constant_value(c.in(1)) == 1.0) return c.in(0);
  if (s.constant_value(c.in(0)) == 1.0) return c.in(1);
  return {};
}

Value div_one(Simplifier& s, const Candidate& c) {
  return s.constant_value(c.in(1)) == 1.0 ? c.in(0) : Value{};
}

// Dividing by a power of two and multiplying by its reciprocal round the same real number.
Value div_power_of_two(Simplifier& s, const Candidate& c) {
  const std::optional<double> value = s.constant_value(c.in(1));
  if (!value || !is_floating(c.type.dtype) || !std::isfinite(*value) || *value == 0) return {};
  int exponent = 0;
  if (std::fabs(std::frexp(*value, &exponent)) != 0.5 || std::abs(exponent) > 14) return {};
  return s.emit("mul", {c.in(0), s.operand_constant(1.0 / *value, c.type)});
}

Value neg_neg(Simplifier& s, const Candidate& c) {
  const Node* inner = s.made_by(c.in(0), "neg");
  return inner != nullptr ? inner->inputs[0] : Value{};
}

Value same_operands(Simplifier&, const Candidate& c) { return c.in(0) == c.in(1) ? c.in(0) : Value{}; }
Value same_branches(Simplifier&, const Candidate& c) { return c.in(1) == c.in(2) ? c.in(1) : Value{}; }

constexpr std::array kRules = {
    Rule{"add", add_zero},          Rule{"add", add_negated},     Rule{"sub", sub_zero},
    Rule{"sub", add_negated},       Rule{"mul", mul_one},         Rule{"div", div_one},
    Rule{"div", div_power_of_two},  Rule{"neg", neg_neg},         Rule{"maximum", same_operands},
    Rule{"minimum", same_operands}, Rule{"where", same_branches},
};

}  // namespace

std::span<const Rule> arithmetic_rules() { return kRules; }

}  // namespace lockstep::simplification
