#include "base/shape.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {

Shape::Shape(std::initializer_list<int64_t> extents)
    : Shape(std::span<const int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const int64_t> extents) {
  if (extents.size() > kMaxRank)
    throw UserError("a shape has {} axes; at most {} are supported", extents.size(),
                    static_cast<int>(kMaxRank));
  rank_ = static_cast<int>(extents.size());
  // Extents of zero are left out, so that a product of some axes cannot overflow either.
  int64_t elements = 1;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const int64_t extent = extents[axis];
    if (extent < 0) throw UserError("axis {} of a shape is {}; extents cannot be negative", axis, extent);
    extents_[axis] = extent;
    if (extent != 0 && elements > kMaxElements / extent)
      throw UserError("shape [{}] has more than 2^46 elements; make it smaller", fmt::join(extents, ","));
    if (extent != 0) elements *= extent;
    numel_ *= extent;
  }
}

int64_t Shape::product(int first, int last) const {
  int64_t result = 1;
  for (int axis = first; axis < last; ++axis) result *= extents_[static_cast<size_t>(axis)];
  return result;
}

std::array<int64_t, Shape::kMaxRank> Shape::strides() const {
  std::array<int64_t, kMaxRank> result{};
  int64_t stride = 1;
  for (int axis = rank_ - 1; axis >= 0; --axis) {
    result[static_cast<size_t>(axis)] = stride;
    stride *= extents_[static_cast<size_t>(axis)];
  }
  return result;
}

Shape Shape::with(int axis, int64_t extent) const {
  std::vector<int64_t> extents(begin(), end());
  extents.at(static_cast<size_t>(axis < 0 ? axis + rank_ : axis)) = extent;
  return Shape(extents);
}

Shape Shape::without(int axis) const {
  std::vector<int64_t> extents(begin(), end());
  extents.erase(extents.begin() + (axis < 0 ? axis + rank_ : axis));
  return Shape(extents);
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.extents(), ",")); }

bool broadcast_shapes(const Shape& a, const Shape& b, Shape* result) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> extents(static_cast<size_t>(rank));
  for (int axis = 1; axis <= rank; ++axis) {
    const int64_t left = axis <= a.rank() ? a[-axis] : 1;
    const int64_t right = axis <= b.rank() ? b[-axis] : 1;
    if (left != right && left != 1 && right != 1) return false;
    extents[static_cast<size_t>(rank - axis)] = left == 1 ? right : left;
  }
  *result = Shape(extents);
  return true;
}

}  // namespace lockstep
