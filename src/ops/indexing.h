// Walking over indices of row-major tensors; for references and shape rules, where clarity counts and speed
// does not.
#pragma once
#include <array>
#include <span>

#include "base/shape.h"

namespace lockstep {

using Strides = std::array<int64_t, Shape::kMaxRank>;

// Strides that read a tensor of shape `from` at indices of shape `to`: 0 along repeated axes.
inline Strides broadcast_strides(const Shape& from, const Shape& to) {
  Strides result{};
  const Strides own = from.strides();
  for (int axis = 0; axis < to.rank(); ++axis) {
    const int source = axis - (to.rank() - from.rank());
    if (source >= 0 && from[source] == to[axis])
      result[static_cast<size_t>(axis)] = own[static_cast<size_t>(source)];
  }
  return result;
}

inline int64_t offset_of(std::span<const int64_t> index, const Strides& strides) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * strides[axis];
  return offset;
}

// Calls body(index, flat) for every index of shape in row-major order.
template <typename Body>
void for_each_index(const Shape& shape, const Body& body) {
  std::array<int64_t, Shape::kMaxRank> index{};
  const auto rank = static_cast<size_t>(shape.rank());
  for (int64_t flat = 0; flat < shape.numel(); ++flat) {
    body(std::span<const int64_t>(index.data(), rank), flat);
    for (size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < shape[static_cast<int>(axis)]) break;
      index[axis] = 0;
    }
  }
}

}  // namespace lockstep
