#include "data/bytes/files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "data/bytes/byte_source.h"

namespace lockstep {

namespace fs = std::filesystem;

std::vector<std::string> match_files(const std::string& pattern) {
  if (pattern.empty())
    throw UserError("no data files are named; give a path or a pattern such as data/train-*.csv");
  std::error_code failure;
  if (fs::exists(pattern, failure)) return {pattern};
  glob_t matches{};
  const int result = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches);
  std::vector<std::string> paths(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  globfree(&matches);
  if (result != 0 || paths.empty())
    throw UserError("no file matches {}; give a path that exists, or a pattern such as data/train-*.csv",
                    pattern);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> files_under(const std::string& path) {
  std::error_code failure;
  if (fs::is_regular_file(path, failure)) return {path};
  if (!fs::is_directory(path, failure)) throw UserError("{} is neither a file nor a folder", path);
  std::vector<std::string> paths;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto entry = fs::recursive_directory_iterator(path, options, failure); !failure && entry != end(entry);
       entry.increment(failure)) {
    if (entry->path().filename().string().starts_with('.')) {
      entry.disable_recursion_pending();
    } else if (!entry->is_symlink() && entry->is_regular_file()) {
      paths.push_back(entry->path().string());
    }
  }
  if (failure) throw UserError("cannot list {}: {}", path, failure.message());
  if (paths.empty()) throw UserError("{} holds no files; hidden names and symbolic links do not count", path);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> expand_files(const std::vector<std::string>& patterns, std::string_view suffix) {
  if (patterns.empty())
    throw UserError("no data files are named; give a path or a pattern such as data/train-*.csv");
  std::vector<std::string> all;
  for (const std::string& pattern : patterns) {
    const size_t before = all.size();
    for (const std::string& match : match_files(pattern)) {
      const bool single = !fs::is_directory(match);
      for (std::string& path : files_under(match))
        if (single || without_compression(path).ends_with(suffix)) all.push_back(std::move(path));
    }
    if (all.size() == before) throw UserError("{} holds no file whose name ends in {}", pattern, suffix);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace lockstep
