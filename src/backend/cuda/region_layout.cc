#include "backend/cuda/region_layout.h"

#include <algorithm>

namespace lockstep::cuda {
namespace {

// The step of an operand along each axis of the region it is broadcast to.
std::vector<int64_t> steps(const Shape& operand, const Shape& region) {
  std::vector<int64_t> result(static_cast<size_t>(region.rank()), 0);
  const auto own = operand.strides();
  const int missing = region.rank() - operand.rank();
  for (int axis = 0; axis < operand.rank(); ++axis)
    if (operand[axis] != 1) result[static_cast<size_t>(axis + missing)] = own[static_cast<size_t>(axis)];
  return result;
}

}  // namespace

RegionLayout::RegionLayout(const Shape& region, std::span<const Shape> operands)
    : count(region.numel()), strides(operands.size()) {
  std::vector<std::vector<int64_t>> full;
  for (const Shape& operand : operands) full.push_back(steps(operand, region));
  for (int axis = 0; axis < region.rank(); ++axis) {
    const auto a = static_cast<size_t>(axis);
    if (region[axis] == 1) continue;
    const bool joins = !extents.empty() && std::all_of(full.begin(), full.end(), [&](const auto& steps) {
      const auto operand = static_cast<size_t>(&steps - full.data());
      return strides[operand].back() == steps[a] * region[axis];
    });
    if (joins) {
      extents.back() *= region[axis];
      for (size_t operand = 0; operand < full.size(); ++operand) strides[operand].back() = full[operand][a];
    } else {
      extents.push_back(region[axis]);
      for (size_t operand = 0; operand < full.size(); ++operand) strides[operand].push_back(full[operand][a]);
    }
  }
  if (!extents.empty()) return;
  extents.push_back(1);
  for (auto& own : strides) own.push_back(0);
}

bool RegionLayout::allows_width(int width) const {
  return extents.back() % width == 0 &&
         std::all_of(strides.begin(), strides.end(), [](const auto& own) { return own.back() <= 1; });
}

}  // namespace lockstep::cuda
