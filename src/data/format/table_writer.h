// TableWriter: records with named columns as the bytes of one file of some format: what `lockstep data
// convert` and the generators write with. Same records, same bytes, however they are cut into blocks.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/new_file.h"
#include "data/bytes/codec.h"
#include "data/format/column_block.h"

namespace lockstep {

struct TableWriterOptions {
  Codec compression = Codec::kZstd;  // of formats that have their own
};

class TableWriter {
 public:
  virtual ~TableWriter() = default;

  // Both append to `out` what can be written by now. The block has the columns that the writer was made for.
  // Throws UserError for values that the format cannot hold. Of formats whose records are lines (CSV, JSONL)
  // more may follow after finish(), which gives the header where no record came before.
  virtual void append(const ColumnBlock& block, std::string& out) = 0;
  virtual void finish(std::string& out) = 0;
};

// Where the values of a record lie among those of its column.
struct ValueRange {
  size_t begin = 0, end = 0;
};
inline ValueRange values_of(const BlockColumn& column, size_t record) {
  if (column.width == kVarying)
    return {record == 0 ? 0 : static_cast<size_t>(column.ends[record - 1]),
            static_cast<size_t>(column.ends[record])};
  const auto width = static_cast<size_t>(column.width);
  return {record * width, (record + 1) * width};
}

// A file that is written from front to back and appears under its name when it is finished
// (base/new_file.h).
class PartialFile {
 public:
  // Throws UserError if it cannot be made. Without finish() nothing is left.
  explicit PartialFile(std::string path) : file_(std::move(path)) {}

  void write(std::string_view bytes) {
    size_ += static_cast<int64_t>(bytes.size());
    file_.write(bytes);
  }
  // Once more what lies here: a header that is known only at the end.
  void write_at(int64_t offset, std::string_view bytes) { file_.write_at(offset, bytes); }
  int64_t size() const { return size_; }
  void finish() { file_.finish(NewFile::Sync::kYes); }

 private:
  NewFile file_;
  int64_t size_ = 0;
};

}  // namespace lockstep
