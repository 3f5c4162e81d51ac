// CompactRows: records in fewer bytes than the columns of a batch take, for formats whose records need no
// transform. Blocks are kept like this, and a record is expanded straight into its row of the batch.
//
// What expand() gives for a row is what decode() gives for its record, bit by bit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

class CompactRows {
 public:
  virtual ~CompactRows() = default;

  virtual int64_t row_bytes() const = 0;
  // Whether a row that comes straight from a file has only values that decode() takes.
  virtual bool holds(const std::byte* /*row*/) const { return true; }
  // The values of one record, one pointer for each column of Format::fields.
  virtual void expand(const std::byte* row, std::span<std::byte* const> columns) const = 0;
};

}  // namespace lockstep
