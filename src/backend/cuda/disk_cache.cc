#include "backend/cuda/disk_cache.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/sha256.h"

namespace lockstep::cuda {
namespace {

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::filesystem::path folder_of_environment() {
  if (const std::string own = variable("LOCKSTEP_CACHE"); !own.empty()) return own;
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return std::filesystem::path(cache) / "lockstep";
  if (const std::string home = variable("HOME"); !home.empty())
    return std::filesystem::path(home) / ".cache" / "lockstep";
  return {};
}

// A file holds the hash of the data, then the data.
constexpr size_t kHashDigits = 64;

}  // namespace

DiskCache::DiskCache() : folder_(folder_of_environment()) {}

std::filesystem::path DiskCache::path_of(std::string_view key, std::string_view kind) const {
  return folder_ / "cuda" / fmt::format("{}.{}", sha256(key), kind);
}

std::string DiskCache::read(std::string_view key, std::string_view kind) const {
  if (folder_.empty()) return "";
  std::ifstream file(path_of(key, kind), std::ios::binary);
  if (!file) return "";
  std::ostringstream text;
  text << file.rdbuf();
  const std::string all = std::move(text).str();
  if (all.size() <= kHashDigits) return "";
  std::string data = all.substr(kHashDigits);
  return sha256(data) == std::string_view(all).substr(0, kHashDigits) ? data : "";
}

// Whole or not at all: other processes may read and write the same file.
void DiskCache::write(std::string_view key, std::string_view kind, std::string_view data) const {
  if (folder_.empty()) return;
  const std::filesystem::path path = path_of(key, kind);
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  const std::filesystem::path partial = fmt::format("{}.{}", path.string(), getpid());
  std::ofstream file(partial, std::ios::binary);
  file << sha256(data) << data;
  file.close();
  if (file)
    std::filesystem::rename(partial, path, error);
  else
    std::filesystem::remove(partial, error);
}

}  // namespace lockstep::cuda
