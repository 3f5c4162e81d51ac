// Filters over what is known of the columns of some records: whether any of them can match.
#include <algorithm>

#include "data/select/compare_values.h"
#include "data/select/filter.h"

namespace lockstep {
namespace {

using Kind = FilterNode::Kind;

// Whether the answer for some record may be yes, and whether it may be no.
struct Answers {
  bool yes = true, no = true;
};

// As for two values, or nothing where the two cannot be compared or one is not known.
std::optional<int> order_of(const std::optional<ScalarValue>& bound, const ScalarValue& value) {
  if (!bound || bound->index() != value.index()) return {};
  if (const auto* text = std::get_if<std::string>(&*bound))
    return lockstep::order_of(std::string_view(*text), std::get<std::string>(value));
  return lockstep::order_of(std::get<ExactNumber>(*bound), std::get<ExactNumber>(value));
}

// Of the values between the bounds.
Answers compared(Kind kind, const ColumnBounds& bounds, const ScalarValue& value) {
  const auto least = order_of(bounds.least, value), most = order_of(bounds.most, value);
  const bool all_less = most && *most < 0, all_more = least && *least > 0;
  const bool all_equal = least && most && *least == 0 && *most == 0;
  switch (kind) {
    case Kind::kEqual: return {!all_less && !all_more, !all_equal};
    case Kind::kUnequal: return {!all_equal, !all_less && !all_more};
    case Kind::kLess: return {!(least && *least >= 0), !all_less};
    case Kind::kAtMost: return {!all_more, !(most && *most <= 0)};
    case Kind::kMore: return {!(most && *most <= 0), !all_more};
    default: return {!all_less, !(least && *least >= 0)};
  }
}

Answers tested(const FilterNode& node, const ColumnBounds& bounds) {
  if (node.kind == Kind::kMissing) return {bounds.may_miss, bounds.may_hold};
  Answers answers{false, true};
  if (node.kind != Kind::kIn) {
    answers = compared(node.kind, bounds, node.values[0]);
  } else {
    for (const ScalarValue& value : node.values) {
      const Answers one = compared(Kind::kEqual, bounds, value);
      answers = {answers.yes || one.yes, answers.no && one.no};
    }
  }
  // What is missing answers no.
  return {bounds.may_hold && answers.yes, bounds.may_miss || (bounds.may_hold && answers.no)};
}

Answers answers_of(const FilterNode& node, const Filter::BoundsOf& bounds) {
  switch (node.kind) {
    case Kind::kNot: {
      const Answers part = answers_of(node.parts[0], bounds);
      return {part.no, part.yes};
    }
    case Kind::kAnd:
    case Kind::kOr: {
      const bool both = node.kind == Kind::kAnd;
      Answers all{both, !both};
      for (const FilterNode& part : node.parts) {
        const Answers one = answers_of(part, bounds);
        all = both ? Answers{all.yes && one.yes, all.no || one.no}
                   : Answers{all.yes || one.yes, all.no && one.no};
      }
      return all;
    }
    default: return tested(node, bounds(node.column));
  }
}

}  // namespace

bool Filter::may_match(const BoundsOf& bounds) const { return answers_of(root_, bounds).yes; }

}  // namespace lockstep
