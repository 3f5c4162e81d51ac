#include "backend/cpu/tile_layout.h"

#include <algorithm>

#include "backend/cpu/kernel_def.h"
#include "ops/indexing.h"

namespace lockstep::cpu {

TileLayout::TileLayout(const Shape& shape, std::span<const Shape> operands, int64_t tile_elements,
                       bool whole_rows) {
  for (const Shape& operand : operands) {
    operands_.emplace_back();
    operands_.back().strides = broadcast_strides(operand, shape);
  }
  merge_axes(shape);
  columns_ = extents_[rank_ - 1];
  rows_ = 1;
  for (size_t axis = 0; axis + 1 < rank_; ++axis) rows_ *= extents_[axis];
  for (Operand& operand : operands_) classify(operand);
  if (shape.numel() > 0) cut(tile_elements, whole_rows);
}

// Drops axes of extent 1 and joins an axis with the one before it when every operand steps through both as
// through one.
void TileLayout::merge_axes(const Shape& shape) {
  size_t kept = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto from = static_cast<size_t>(axis);
    if (shape[axis] == 1) continue;
    const bool joins =
        kept > 0 && std::all_of(operands_.begin(), operands_.end(), [&](const Operand& operand) {
          return operand.strides[kept - 1] == operand.strides[from] * shape[axis];
        });
    if (joins) {
      extents_[kept - 1] *= shape[axis];
      for (Operand& operand : operands_) operand.strides[kept - 1] = operand.strides[from];
      continue;
    }
    extents_[kept] = shape[axis];
    for (Operand& operand : operands_) operand.strides[kept] = operand.strides[from];
    ++kept;
  }
  if (kept == 0) {
    extents_[0] = 1;
    for (Operand& operand : operands_) operand.strides[0] = 0;
    kept = 1;
  }
  rank_ = kept;
}

void TileLayout::classify(Operand& operand) const {
  const int64_t column_stride = operand.strides[rank_ - 1];
  bool uniform = true;
  for (size_t axis = 0; axis + 2 < rank_; ++axis)
    uniform = uniform && operand.strides[axis] == operand.strides[axis + 1] * extents_[axis + 1];
  operand.row_stride = rank_ >= 2 ? operand.strides[rank_ - 2] : 0;
  if (!uniform)
    operand.access = Access::kStrided;
  else if (operand.row_stride == 0 && rows_ > 1)
    operand.access = column_stride == 0 ? Access::kScalar : Access::kRow;
  else if (rows_ == 1)
    operand.access = column_stride == 0 ? Access::kScalar : Access::kFull;
  else
    operand.access = column_stride == 0 ? Access::kColumn : Access::kFull;
}

void TileLayout::cut(int64_t tile_elements, bool whole_rows) {
  if (whole_rows || 2 * columns_ <= tile_elements) {
    rows_per_tile_ = std::clamp<int64_t>(tile_elements / columns_, 1, rows_);
    tiles_ = ceil_div(rows_, rows_per_tile_);
    columns_per_tile_ = columns_;
    largest_tile_ = rows_per_tile_ * columns_;
    return;
  }
  // Even parts, each a multiple of the widest vector, so that no tile is a sliver.
  constexpr int64_t kLanes = 16;
  columns_per_tile_ = ceil_div(ceil_div(columns_, ceil_div(columns_, tile_elements)), kLanes) * kLanes;
  tiles_per_row_ = ceil_div(columns_, columns_per_tile_);
  tiles_ = rows_ * tiles_per_row_;
  largest_tile_ = columns_per_tile_;
}

Tile TileLayout::tile(int64_t index) const {
  if (rows_per_tile_ > 0) {
    const int64_t row = index * rows_per_tile_;
    return {row, std::min(rows_per_tile_, rows_ - row), 0, columns_};
  }
  const int64_t column = index % tiles_per_row_ * columns_per_tile_;
  return {index / tiles_per_row_, 1, column, std::min(columns_per_tile_, columns_ - column)};
}

int64_t TileLayout::row_offset(size_t operand, int64_t row) const {
  const Operand& o = operands_[operand];
  if (o.access != Access::kStrided) return row * o.row_stride;
  int64_t offset = 0;
  for (size_t axis = rank_ - 1; axis-- > 0;) {
    offset += row % extents_[axis] * o.strides[axis];
    row /= extents_[axis];
  }
  return offset;
}

}  // namespace lockstep::cpu
