#include "data/index/kept_file.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"

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

}  // namespace lockstep
