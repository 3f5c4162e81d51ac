#include "base/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/durable_file.h"
#include "base/error.h"

namespace lockstep {

FileReader::FileReader(std::string path) : path_(std::move(path)) {
  descriptor_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (descriptor_.number() < 0 || ::fstat(descriptor_.number(), &info) != 0)
    throw_file_error("open", path_, errno);
  if (!S_ISREG(info.st_mode)) throw UserError("{} is not a file", path_);
  bytes_ = info.st_size;
}

void FileReader::read(int64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t count = ::pread(descriptor_.number(), into.data(), into.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_file_error("read", path_, errno);
    if (count == 0) throw UserError("{} ends at byte {}; {} more expected", path_, offset, into.size());
    into = into.subspan(static_cast<size_t>(count));
    offset += count;
  }
}

}  // namespace lockstep
