// Files that are on the disk when a call returns, hashed while they are written, with errors that say what
// the system said and what to do. A failed sync is a failed file: it is never tried again, since the system
// may have dropped the pages that it could not write.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/sha256.h"

namespace lockstep {

class DurableFile {
 public:
  // Creates the file, or empties it.
  explicit DurableFile(std::string path);

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Syncs and closes; the file takes no more bytes. Returns its SHA-256.
  std::string finish();

  int64_t bytes() const { return bytes_; }

 private:
  std::string path_;
  FileDescriptor descriptor_;
  Sha256 hash_;
  int64_t bytes_ = 0;
};

// A file of a given length that several fill in (FilePart): made with its first bytes, durable after sync().
class FileFrame {
 public:
  FileFrame(std::string path, std::string_view first_bytes, int64_t length);

  const std::string& path() const { return path_; }
  // Of what all processes of this host have written. Closes the file.
  void sync();

 private:
  std::string path_;
  FileDescriptor descriptor_;
};

// A file that is there, of which this process writes some bytes while others write others.
class FilePart {
 public:
  explicit FilePart(std::string path);

  void write(int64_t offset, std::span<const std::byte> bytes);
  // Closes it, after a sync where `durable` says so.
  void finish(bool durable);

 private:
  std::string path_;
  FileDescriptor descriptor_;
};

// Makes the names in a folder durable.
void sync_folder(const std::string& path);
// Renames a folder and makes that durable. One that has the new name already is replaced: the two change
// their names in one instant where the file system can do so, and what was replaced is left under the old
// name for the caller to remove.
void rename_durably(const std::string& from, const std::string& to);

// UserError "cannot <action> <path>: <what errno says>", with the remedy where there is one.
[[noreturn]] void throw_file_error(std::string_view action, const std::string& path, int error);

}  // namespace lockstep
