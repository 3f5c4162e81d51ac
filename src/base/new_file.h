// NewFile: a file that gets its name when it is complete, so that a reader sees the old bytes or the new,
// never a part.
//
// Until then it lies beside that name under one that nobody can foresee, and is made so that nothing that is
// there already is opened or followed: in a folder that others may write to, a link planted where the file
// will be written leads nowhere. The rename replaces what has the name, be it a link, and never what the link
// points to.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace lockstep {

class NewFile {
 public:
  // Throws UserError with what the system said.
  explicit NewFile(std::string path);
  ~NewFile();  // without finish() nothing is left
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }  // empty once it has its name
  int descriptor() const { return descriptor_.number(); }

  void write(std::string_view bytes);
  // Other bytes for a place that is written already, or far beyond the end.
  void write_at(int64_t offset, std::string_view bytes);
  // Syncs, where it is to survive a loss of power.
  enum class Sync : uint8_t { kNo, kYes };
  void finish(Sync sync = Sync::kNo);

 private:
  [[noreturn]] void fail() const;

  std::string path_, temporary_;
  FileDescriptor descriptor_;
};

// What the names end in under which files lie until they are complete: those of a killed process stay.
inline constexpr std::string_view kPartialEnding = ".partial";
// The path that such a file would have got; empty where the name is none of these.
std::string finished_path(const std::string& temporary);

}  // namespace lockstep
