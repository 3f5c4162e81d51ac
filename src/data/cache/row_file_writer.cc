#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/number_text.h"
#include "data/cache/row_file.h"

namespace lockstep {

std::string partial_path(const std::string& path) { return path + ".partial"; }

RowFileWriter::RowFileWriter(std::string path, RowFileHeader header)
    : path_(std::move(path)),
      header_(std::move(header)),
      hashes_(static_cast<size_t>(header_.chunks())),
      file_(open(partial_path(path_).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (file_ < 0) fail(errno);
  // Where the file system cannot tell, it will when bytes are written.
  if (fallocate(file_, 0, 0, header_.file_bytes()) != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
    const int error = errno;
    close(file_);
    unlink(partial_path(path_).c_str());
    fail(error);
  }
}

RowFileWriter::~RowFileWriter() {
  if (file_ < 0) return;
  close(file_);
  unlink(partial_path(path_).c_str());
}

void RowFileWriter::fail(int error) const {
  throw UserError(
      "cannot write {}, which needs {}: {}; name another folder as data.cache_folder, or remove data.cache",
      partial_path(path_), bytes_text(header_.file_bytes()), std::strerror(error));
}

void RowFileWriter::write_at(int64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t done = pwrite(file_, bytes.data(), bytes.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail(done < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(done));
    offset += done;
  }
}

void RowFileWriter::write(int64_t first, std::span<const std::byte> rows) {
  const int64_t chunk_rows = header_.chunk_rows();
  const auto chunk_bytes = static_cast<size_t>(chunk_rows * header_.row_bytes);
  LOCKSTEP_CHECK(first % chunk_rows == 0, "rows from {} on, in chunks of {}", first, chunk_rows);
  int64_t chunk = first / chunk_rows;
  for (auto left = rows; !left.empty(); ++chunk) {
    const auto here = left.first(std::min(left.size(), chunk_bytes));
    hashes_[static_cast<size_t>(chunk)] = row_chunk_hash(here, chunk);
    left = left.subspan(here.size());
  }
  write_at(kRowsBegin + first * header_.row_bytes, rows);
}

void RowFileWriter::finish() {
  write_at(header_.rows_end(), std::as_bytes(std::span(hashes_)));
  const std::string header = to_bytes(header_);
  write_at(0, std::as_bytes(std::span(header)));
  if (std::rename(partial_path(path_).c_str(), path_.c_str()) != 0) fail(errno);
  close(file_);
  file_ = -1;
}

}  // namespace lockstep
