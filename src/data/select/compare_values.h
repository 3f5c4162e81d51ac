// How the values of filters are compared: whole numbers exactly, others as f64, texts by their bytes.
#pragma once
#include <string_view>

#include "data/select/filter.h"

namespace lockstep {

// Below, equal or above: -1, 0 or 1.
inline int order_of(const ExactNumber& a, const ExactNumber& b) {
  if (a.whole && b.whole) return *a.whole < *b.whole ? -1 : *a.whole > *b.whole ? 1 : 0;
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}
inline int order_of(std::string_view a, std::string_view b) {
  const int order = a.compare(b);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

inline bool compares(FilterNode::Kind kind, int order) {
  switch (kind) {
    case FilterNode::Kind::kEqual: return order == 0;
    case FilterNode::Kind::kUnequal: return order != 0;
    case FilterNode::Kind::kLess: return order < 0;
    case FilterNode::Kind::kAtMost: return order <= 0;
    case FilterNode::Kind::kMore: return order > 0;
    default: return order >= 0;
  }
}

}  // namespace lockstep
