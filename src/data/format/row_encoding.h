// RowEncoding: how the columns of a format become the rows that batches are made of, where each place of a
// row is four bytes and depends on one value of one column alone. Formats that store a value once for many
// records (dictionaries) then encode it once, and write rows without columns in between.
//
// What encode() gives for a value is what the transform behind it gives for it in a block, bit by bit.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/format/column_block.h"

namespace lockstep {

inline constexpr size_t kPlaceBytes = 4;
// So many places of rows, about, are decoded before they are put into them.
inline constexpr size_t kPlacesTogether = 8;

class RowEncoding {
 public:
  virtual ~RowEncoding() = default;

  // No other has it: what is kept encoded is kept under it.
  uint64_t id() const { return id_; }
  // The column that each place of a row is made of.
  virtual std::vector<std::string> place_columns() const = 0;
  // Values of that column, one for each record, as they lie at the place. False: one of them cannot be
  // encoded; the transform says which and why.
  virtual bool encode(size_t place, const BlockColumn& values, std::span<std::byte> out) const = 0;

 protected:
  RowEncoding() = default;

 private:
  static uint64_t next_id() {
    static std::atomic<uint64_t> last = 0;
    return ++last;
  }
  uint64_t id_ = next_id();
};

}  // namespace lockstep
