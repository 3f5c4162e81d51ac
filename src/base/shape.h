// Shape: the extents of a dense row-major tensor, rank 0 to 8, with element counts that cannot overflow.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

class Shape {
 public:
  static constexpr int kMaxRank = 8;
  // No tensor may hold more elements than this, so that byte counts and strides stay far from overflow.
  static constexpr int64_t kMaxElements = int64_t{1} << 46;

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents);
  // Throws UserError for a negative extent, too many axes, or too many elements.
  explicit Shape(std::span<const int64_t> extents);

  int rank() const { return rank_; }
  int64_t numel() const { return numel_; }
  // Negative axes count from the end, as in axis(-1).
  int64_t operator[](int axis) const { return extents_[static_cast<size_t>(axis < 0 ? axis + rank_ : axis)]; }
  std::span<const int64_t> extents() const { return {extents_.data(), static_cast<size_t>(rank_)}; }
  const int64_t* begin() const { return extents_.data(); }
  const int64_t* end() const { return extents_.data() + rank_; }

  // The product of the extents of axes [first, last).
  int64_t product(int first, int last) const;
  // Elements between neighbours along each axis, row-major.
  std::array<int64_t, kMaxRank> strides() const;

  Shape with(int axis, int64_t extent) const;
  Shape without(int axis) const;

  bool operator==(const Shape& other) const;

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
  int64_t numel_ = 1;
};

std::string to_string(const Shape& shape);  // "[2,3]"

// Whether a and b broadcast together (NumPy's rule); if so *result is the common shape.
bool broadcast_shapes(const Shape& a, const Shape& b, Shape* result);

}  // namespace lockstep
