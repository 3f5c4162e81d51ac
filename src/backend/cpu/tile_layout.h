// TileLayout: how a pointwise computation over one shape is cut into tiles, and where each operand lies in a
// tile.
//
// The shape is seen as [rows, columns] after merging all axes that every operand walks alike. A tile is
// either part of one row or several whole rows. Operands keep their own, smaller shapes: a bias [C] is one
// row read again and again, never a materialised copy. Everything here depends on shapes alone, so the
// partition is the same on any number of threads.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/shape.h"

namespace lockstep::cpu {

enum class Access : uint8_t {
  kFull,     // the operand has the result's shape
  kRow,      // [columns], the same for every row
  kColumn,   // one element per row
  kScalar,   // one element
  kStrided,  // anything else that broadcasts: each row begins where offset() says
};

struct Tile {
  int64_t row = 0;
  int64_t rows = 0;
  int64_t column = 0;
  int64_t columns = 0;  // the layout's whole width when rows > 1
  int64_t elements() const { return rows * columns; }
};

class TileLayout {
 public:
  // Tiles hold at most tile_elements; with whole_rows they are never less than a row, whatever its length.
  TileLayout(const Shape& shape, std::span<const Shape> operands, int64_t tile_elements,
             bool whole_rows = false);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t tiles() const { return tiles_; }
  int64_t largest_tile() const { return largest_tile_; }
  // How many whole rows a full tile has; 0 when a row takes several tiles.
  int64_t rows_per_tile() const { return rows_per_tile_; }
  Tile tile(int64_t index) const;
  // Where a tile begins in the result and in full operands.
  int64_t offset(const Tile& tile) const { return tile.row * columns_ + tile.column; }

  Access access(size_t operand) const { return operands_[operand].access; }
  // Elements from the operand's start to its element for (row, column 0), and from one column to the next (0
  // or 1).
  int64_t row_offset(size_t operand, int64_t row) const;
  int64_t column_stride(size_t operand) const { return operands_[operand].strides[rank_ - 1]; }

 private:
  struct Operand {
    Access access = Access::kFull;
    std::array<int64_t, Shape::kMaxRank> strides{};
    int64_t row_stride = 0;  // not for kStrided
  };
  void merge_axes(const Shape& shape);
  void classify(Operand& operand) const;
  void cut(int64_t tile_elements, bool whole_rows);

  size_t rank_ = 1;
  std::array<int64_t, Shape::kMaxRank> extents_{};
  std::vector<Operand> operands_;
  int64_t rows_ = 1;
  int64_t columns_ = 1;
  int64_t tiles_ = 0;
  int64_t rows_per_tile_ = 0;
  int64_t tiles_per_row_ = 1;
  int64_t columns_per_tile_ = 0;
  int64_t largest_tile_ = 0;
};

}  // namespace lockstep::cpu
