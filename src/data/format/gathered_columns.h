// GatheredColumns: records of several blocks put together until a writer has enough of them. Owns its bytes.
#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "data/format/column_block.h"

namespace lockstep {

class GatheredColumns {
 public:
  explicit GatheredColumns(const std::vector<BlockField>& fields);

  size_t records() const { return static_cast<size_t>(gathered_.records); }
  const std::vector<BlockColumn>& columns() const { return gathered_.columns; }
  int64_t bytes() const;  // with those of byte strings

  // Throws UserError for a block with other columns.
  void append(const ColumnBlock& block);
  // Lets go of the first `count` records.
  void drop(size_t count);

 private:
  std::vector<BlockField> fields_;
  ColumnBlock gathered_;
};

}  // namespace lockstep
