#include "base/new_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/durable_file.h"
#include "base/error.h"

namespace lockstep {
namespace {

[[noreturn]] void refuse(const std::string& path) {
  throw UserError("{} is there already; write --overwrite to replace it, or choose another name", path);
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// 0, or what errno says.
int rename_without_replacing(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL) return errno;  // a file system that cannot do that in one instant
  if (std::filesystem::exists(std::filesystem::symlink_status(to))) return EEXIST;
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

NewFiles::~NewFiles() {
  for (const File& file : files_) ::unlink(file.temporary.c_str());
}

std::string NewFiles::add(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw UserError("{} is a folder; name a file", path);
  if (!overwrite_ && std::filesystem::exists(std::filesystem::symlink_status(path, error))) refuse(path);
  files_.push_back({fmt::format("{}.tmp-{}", path, ::getpid()), path});
  return files_.back().temporary;
}

// The first one comes last: where it is, the others are too.
void NewFiles::finish() {
  for (auto each = files_.rbegin(); each != files_.rend(); ++each) {
    const File& file = *each;
    const int error = overwrite_ ? (std::rename(file.temporary.c_str(), file.path.c_str()) == 0 ? 0 : errno)
                                 : rename_without_replacing(file.temporary, file.path);
    if (error == EEXIST) refuse(file.path);
    if (error != 0) throw_file_error("create", file.path, error);
  }
  for (const File& file : files_) sync_folder(folder_of(file.path));
  files_.clear();
}

}  // namespace lockstep
