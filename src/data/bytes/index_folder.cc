#include "data/bytes/index_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/log.h"

namespace lockstep {

namespace fs = std::filesystem;

std::string IndexFolder::of(const std::string& file) const {
  return path.empty() ? (fs::path(file).parent_path() / ".lockstep-index").string() : path;
}

bool IndexFolder::prepare(const std::string& file) const {
  if (!writes) return false;
  const std::string folder = of(file);
  struct stat found {};
  if (path.empty() && lstat(folder.c_str(), &found) == 0 && S_ISLNK(found.st_mode) &&
      found.st_uid != geteuid() && found.st_uid != 0) {
    log_warn(
        "{} is a link that another user has made: nothing is written there; name a folder of yours as "
        "data.index_folder",
        folder);
    return false;
  }
  std::error_code failure;
  fs::create_directories(folder, failure);
  return true;
}

}  // namespace lockstep
