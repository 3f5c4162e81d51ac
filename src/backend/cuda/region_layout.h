// RegionLayout: how the operands of a pointwise region are walked: the region's axes joined as far as all
// operands allow, and each operand's step along them (0 where it is repeated).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/shape.h"

namespace lockstep::cuda {

struct RegionLayout {
  int64_t count = 0;
  std::vector<int64_t> extents;               // at least one
  std::vector<std::vector<int64_t>> strides;  // [operand][axis], in elements

  RegionLayout(const Shape& region, std::span<const Shape> operands);

  int axes() const { return static_cast<int>(extents.size()); }
  bool repeated_inside(size_t operand) const { return strides[operand].back() == 0; }
  // Whether `width` neighbours of the region are neighbours in every operand, or one element of it.
  bool allows_width(int width) const;
};

}  // namespace lockstep::cuda
