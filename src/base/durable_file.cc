#include "base/durable_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace lockstep {
namespace {

// Small enough that the bytes are still in a cache when they are written after they were hashed.
constexpr size_t kPiece = size_t{1} << 18;

std::string remedy(int error) {
  if (error == ENOSPC || error == EDQUOT) return "; free some space, or keep fewer checkpoints";
  if (error == EFBIG)
    return "; the file is larger than the limit of this process (ulimit -f) or of the file system";
  if (error == EACCES || error == EPERM || error == EROFS)
    return "; choose an output folder that can be written";
  return "";
}

void sync_and_close(FileDescriptor& file, const std::string& path, bool durable) {
  if (durable && ::fsync(file.number()) != 0) throw_file_error("sync", path, errno);
  if (file.close() != 0) throw_file_error("close", path, errno);
}

void write_at(const FileDescriptor& file, const std::string& path, int64_t offset,
              std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file.number(), bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error(fmt::format("write bytes from {} on of", offset), path, errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
}

}  // namespace

void throw_file_error(std::string_view action, const std::string& path, int error) {
  throw UserError("cannot {} {}: {}{}", action, path, std::strerror(error), remedy(error));
}

DurableFile::DurableFile(std::string path) : path_(std::move(path)) {
  descriptor_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (descriptor_.number() < 0) throw_file_error("create", path_, errno);
}

void DurableFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::span<const std::byte> piece = bytes.first(std::min(kPiece, bytes.size()));
    bytes = bytes.subspan(piece.size());
    hash_.update(piece);
    while (!piece.empty()) {
      const ssize_t written = ::write(descriptor_.number(), piece.data(), piece.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw_file_error(fmt::format("write more than {} bytes of", bytes_), path_, errno);
      piece = piece.subspan(static_cast<size_t>(written));
      bytes_ += written;
    }
  }
}

std::string DurableFile::finish() {
  sync_and_close(descriptor_, path_, true);
  return hash_.finish();
}

FileFrame::FileFrame(std::string path, std::string_view first_bytes, int64_t length)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor_.number() < 0) throw_file_error("create", path_, errno);
  write_at(descriptor_, path_, 0, std::as_bytes(std::span(first_bytes)));
  if (::ftruncate(descriptor_.number(), length) != 0)
    throw_file_error(fmt::format("make room for {} bytes in", length), path_, errno);
}

void FileFrame::sync() { sync_and_close(descriptor_, path_, true); }

FilePart::FilePart(std::string path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_WRONLY | O_CLOEXEC)) {
  if (descriptor_.number() < 0) throw_file_error("open", path_, errno);
}

void FilePart::write(int64_t offset, std::span<const std::byte> bytes) {
  write_at(descriptor_, path_, offset, bytes);
}

void FilePart::finish(bool durable) { sync_and_close(descriptor_, path_, durable); }

void sync_folder(const std::string& path) {
  const FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.number() < 0) throw_file_error("open", path, errno);
  // Some network file systems know no sync of a folder, and need none.
  if (::fsync(folder.number()) != 0 && errno != EINVAL) throw_file_error("sync", path, errno);
}

void rename_durably(const std::string& from, const std::string& to) {
  const bool exchanged = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0;
  const std::string aside = from + "-old";
  if (!exchanged) {
    const bool replaces = ::rename(to.c_str(), aside.c_str()) == 0;
    if (::rename(from.c_str(), to.c_str()) != 0) throw_file_error("rename", from, errno);
    if (replaces && ::rename(aside.c_str(), from.c_str()) != 0) throw_file_error("rename", aside, errno);
  }
  sync_folder(std::filesystem::path(to).parent_path().string());
}

}  // namespace lockstep
