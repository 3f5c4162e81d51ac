#include "train/checkpoint/checkpoint_folder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <random>

#include "base/durable_file.h"
#include "base/error.h"
#include "train/checkpoint/manifest.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kTemporary = ".tmp-";
constexpr std::string_view kMarker = "marker";

// The step of "checkpoint-<step>" exactly as checkpoint_path spells it.
std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = -1;
  const char* end = name.data() + name.size();
  const auto [stop, failure] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (failure != std::errc() || stop != end || name != fmt::format("{}{}", kPrefix, step))
    return std::nullopt;
  return step;
}

// Of a folder that may be absent. One that cannot be read is an error: a run must not start anew because of
// it.
std::vector<fs::path> entries_of(const std::string& folder) {
  std::error_code failure;
  std::vector<fs::path> paths;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure))
    paths.push_back(entry->path());
  if (failure && failure != std::errc::no_such_file_or_directory)
    throw_file_error("list", folder, failure.value());
  return paths;
}

std::string best_link(const std::string& run_dir) { return run_dir + "/best"; }

}  // namespace

std::string checkpoint_path(const std::string& run_dir, int64_t step) {
  return fmt::format("{}/{}{}", run_dir, kPrefix, step);
}

std::string temporary_name(const std::string& path) {
  return fmt::format("{}{}{}-{:08x}", path, kTemporary, ::getpid(), std::random_device{}());
}

std::string marker_name(const std::string& run_dir) {
  return temporary_name(fmt::format("{}/{}", run_dir, kMarker));
}

std::vector<CheckpointInfo> list_checkpoints(const std::string& run_dir) {
  std::error_code missing;
  const std::string best = fs::read_symlink(best_link(run_dir), missing).string();
  std::vector<CheckpointInfo> found;
  for (const fs::path& path : entries_of(run_dir)) {
    const std::string name = path.filename().string();
    const std::optional<int64_t> step = step_of(name);
    if (step && fs::exists(path / kManifestHashFile, missing))
      found.push_back({*step, path.string(), name == best});
  }
  std::ranges::sort(found, {}, &CheckpointInfo::step);
  return found;
}

std::optional<CheckpointInfo> latest_checkpoint(const std::string& run_dir) {
  const std::vector<CheckpointInfo> all = list_checkpoints(run_dir);
  return all.empty() ? std::nullopt : std::optional(all.back());
}

std::optional<CheckpointInfo> best_checkpoint(const std::string& run_dir) {
  const std::vector<CheckpointInfo> all = list_checkpoints(run_dir);
  const auto found = std::ranges::find_if(all, &CheckpointInfo::best);
  return found == all.end() ? std::nullopt : std::optional(*found);
}

void mark_best_checkpoint(const std::string& run_dir, int64_t step) {
  const std::string target = fs::path(checkpoint_path(run_dir, step)).filename().string();
  const std::string link = temporary_name(best_link(run_dir));
  if (::symlink(target.c_str(), link.c_str()) != 0) throw_file_error("create", link, errno);
  if (::rename(link.c_str(), best_link(run_dir).c_str()) != 0) throw_file_error("rename", link, errno);
  sync_folder(run_dir);
}

void unmark_best_checkpoint(const std::string& run_dir) {
  if (::unlink(best_link(run_dir).c_str()) != 0 && errno != ENOENT)
    throw_file_error("remove", best_link(run_dir), errno);
}

void remove_checkpoint(const CheckpointInfo& checkpoint) {
  const std::string leaving = temporary_name(checkpoint.path);
  if (::rename(checkpoint.path.c_str(), leaving.c_str()) != 0)
    throw_file_error("rename", checkpoint.path, errno);
  std::error_code failure;
  fs::remove_all(leaving, failure);
  if (failure) throw_file_error("remove", leaving, failure.value());
}

void remove_temporary_folders(const std::string& run_dir) {
  for (const fs::path& path : entries_of(run_dir)) {
    const std::string name = path.filename().string();
    const size_t at = name.find(kTemporary);
    if (at == std::string::npos) continue;
    const std::string stem = name.substr(0, at);
    if (!step_of(stem) && stem != "best" && stem != kMarker) continue;
    std::error_code failure;
    fs::remove_all(path, failure);
    if (failure) throw_file_error("remove", path.string(), failure.value());
  }
}

}  // namespace lockstep
