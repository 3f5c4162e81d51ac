#include "base/file_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/guarded_read.h"

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

FileMapping::~FileMapping() {
  if (pages_ != nullptr) munmap(pages_, page_bytes_);
}

FileMapping FileReader::map(int64_t offset, int64_t bytes) const {
  LOCKSTEP_CHECK(offset >= 0 && bytes >= 0 && offset <= bytes_ - bytes, "bytes {} to {} of {}, which has {}",
                 offset, offset + bytes, path_, bytes_);
  if (bytes == 0) return {nullptr, 0, {}};
  const int64_t skipped = offset % ::sysconf(_SC_PAGESIZE);  // a mapping begins at a page
  const auto page_bytes = static_cast<size_t>(skipped + bytes);
  void* pages = ::mmap(nullptr, page_bytes, PROT_READ, MAP_PRIVATE, descriptor_.number(), offset - skipped);
  if (pages == MAP_FAILED) throw_file_error("map", path_, errno);
  FileMapping mapping(pages, page_bytes,
                      {static_cast<const std::byte*>(pages) + skipped, static_cast<size_t>(bytes)});
  if (!bring_to_memory(mapping.bytes().data(), mapping.bytes().size()))
    throw UserError("{} ends before byte {}, or its disk fails", path_, offset + bytes);
  return mapping;
}

}  // namespace lockstep
