#include "base/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/durable_file.h"
#include "base/error.h"

namespace lockstep {
namespace {

constexpr size_t kDrawnDigits = 16;

// 64 bits of the system's, as 16 digits.
std::string drawn_name() {
  uint64_t drawn = 0;
  while (getrandom(&drawn, sizeof drawn, 0) != static_cast<ssize_t>(sizeof drawn))
    if (errno != EINTR) throw DeviceError("getrandom: {}", std::strerror(errno));
  return fmt::format("{:0{}x}", drawn, kDrawnDigits);
}

bool is_drawn(std::string_view name) {
  return name.size() == kDrawnDigits && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

NewFile::NewFile(std::string path) : path_(std::move(path)) {
  temporary_ = fmt::format("{}.{}{}", path_, drawn_name(), kPartialEnding);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  descriptor_ = FileDescriptor(::open(temporary_.c_str(), kFlags, 0666));
  if (descriptor_.number() < 0) fail();
}

NewFile::~NewFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void NewFile::fail() const { throw_file_error("write", path_, errno); }

void NewFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor(), bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail();
    bytes.remove_prefix(static_cast<size_t>(done));
  }
}

void NewFile::write_at(int64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(descriptor(), bytes.data(), bytes.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail();
    bytes.remove_prefix(static_cast<size_t>(done));
    offset += done;
  }
}

// Closed first: a network file system may report only then that it could not write.
void NewFile::finish(Sync sync) {
  if (sync == Sync::kYes && ::fsync(descriptor()) != 0) fail();
  if (descriptor_.close() != 0) fail();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  temporary_.clear();
}

std::string finished_path(const std::string& temporary) {
  std::string_view path = temporary;
  if (!path.ends_with(kPartialEnding)) return {};
  path.remove_suffix(kPartialEnding.size());
  const size_t point = path.rfind('.');
  if (point == std::string_view::npos || !is_drawn(path.substr(point + 1))) return {};
  return std::string(path.substr(0, point));
}

}  // namespace lockstep
