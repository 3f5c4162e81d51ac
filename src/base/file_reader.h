// Reads parts of one open file, or maps them into memory, with errors that name it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/file_descriptor.h"

namespace lockstep {

// Bytes of a file that lie in memory as long as this lives, without a copy of them.
class FileMapping {
 public:
  FileMapping(void* pages, size_t page_bytes, std::span<const std::byte> bytes)
      : pages_(pages), page_bytes_(page_bytes), bytes_(bytes) {}
  FileMapping(FileMapping&& other) noexcept
      : pages_(std::exchange(other.pages_, nullptr)), page_bytes_(other.page_bytes_), bytes_(other.bytes_) {}
  FileMapping& operator=(FileMapping&&) = delete;
  ~FileMapping();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void* pages_;  // null for no bytes
  size_t page_bytes_;
  std::span<const std::byte> bytes_;
};

class FileReader {
 public:
  explicit FileReader(std::string path);

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }  // when it was opened
  // Fills `into` from `offset` on; an end of file before that is an error.
  void read(int64_t offset, std::span<std::byte> into) const;
  // Waits until the bytes are in memory, so that what cannot be read is an error here and not a signal later.
  FileMapping map(int64_t offset, int64_t bytes) const;

 private:
  std::string path_;
  FileDescriptor descriptor_;
  int64_t bytes_ = 0;
};

}  // namespace lockstep
