#include "data/bytes/kept_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lockstep {
namespace {

constexpr size_t kDigest = 64;

}  // namespace

std::optional<std::string> read_kept(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  std::string text;
  try {
    text = read_file(path, int64_t{1} << 40);
  } catch (const UserError& error) {
    log_warn("{}; it is made again", error.what());
    return {};
  }
  const std::string_view content = std::string_view(text).substr(std::min(kDigest, text.size()));
  if (text.size() < kDigest || sha256(content) != std::string_view(text).substr(0, kDigest)) {
    log_warn("{}: damaged; it is made again", path);
    return {};
  }
  text.erase(0, kDigest);
  return text;
}

void write_kept(const std::string& path, std::string_view content) {
  try {
    write_file(path, sha256(content) + std::string(content));
  } catch (const UserError&) {
    return;
  }
}

FileLock::FileLock(const std::string& path, Wait wait)
    : file_(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644)) {
  // Of another user's: it can be locked all the same.
  if (file_ < 0) file_ = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  const int how = wait == Wait::kYes ? LOCK_EX : LOCK_EX | LOCK_NB;
  int result = 0;
  while (file_ >= 0 && (result = flock(file_, how)) != 0 && errno == EINTR) {
  }
  held_ = result == 0 || errno != EWOULDBLOCK;
}

FileLock::~FileLock() {
  if (file_ >= 0) close(file_);
}

struct ContentHash::State {
  XXH3_state_t hash;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->hash); }

ContentHash::~ContentHash() = default;

void ContentHash::update(std::string_view bytes) {
  XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size());
}

std::string ContentHash::finish() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->hash);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace lockstep
