#include "data/format/table_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace lockstep {
PartialFile::PartialFile(std::string path)
    : path_(std::move(path)),
      file_(open((path_ + ".partial").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (file_ < 0) throw UserError("cannot write {}.partial: {}", path_, std::strerror(errno));
}

PartialFile::~PartialFile() {
  if (file_ < 0) return;
  close(file_);
  unlink((path_ + ".partial").c_str());
}

void PartialFile::write(std::string_view bytes) {
  size_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t done = ::write(file_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw UserError("cannot write {}.partial: {}", path_, std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(done));
  }
}

void PartialFile::write_at(int64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = pwrite(file_, bytes.data(), bytes.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw UserError("cannot write {}.partial: {}", path_, std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(done));
    offset += done;
  }
}

void PartialFile::finish() {
  const bool closed = fsync(file_) == 0 && close(file_) == 0;
  if (!closed) throw UserError("cannot write {}.partial: {}", path_, std::strerror(errno));
  file_ = -1;
  std::error_code failure;
  std::filesystem::rename(path_ + ".partial", path_, failure);
  if (failure) throw UserError("cannot write {}: {}", path_, failure.message());
}

}  // namespace lockstep
