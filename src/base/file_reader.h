// Reads parts of one open file, with errors that name it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/file_descriptor.h"

namespace lockstep {

class FileReader {
 public:
  explicit FileReader(std::string path);

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }  // when it was opened
  // Fills `into` from `offset` on; an end of file before that is an error.
  void read(int64_t offset, std::span<std::byte> into) const;

 private:
  std::string path_;
  FileDescriptor descriptor_;
  int64_t bytes_ = 0;
};

}  // namespace lockstep
