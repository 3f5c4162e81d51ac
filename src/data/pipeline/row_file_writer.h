// RowFileWriter: writes a RowFile under another name, from any number of threads, and gives it its own when
// it is complete: whoever opens that name finds all rows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/pipeline/row_file.h"

namespace lockstep {

class RowFileWriter {
 public:
  // Takes the room it needs at once. Throws UserError that names the file and the bytes.
  RowFileWriter(std::string path, RowFileHeader header);
  // Removes what is not complete.
  ~RowFileWriter();
  RowFileWriter(const RowFileWriter&) = delete;
  RowFileWriter& operator=(const RowFileWriter&) = delete;

  const RowFileHeader& header() const { return header_; }
  // Rows from `first` on, which begin with a chunk and end with one or with the file.
  void write(int64_t first, std::span<const std::byte> rows);
  void finish();

 private:
  void write_at(int64_t offset, std::span<const std::byte> bytes) const;
  [[noreturn]] void fail(int error) const;

  std::string path_;
  RowFileHeader header_;
  std::vector<uint64_t> hashes_;
  int file_ = -1;
};

// What a file is called while it is written.
std::string partial_path(const std::string& path);

}  // namespace lockstep
