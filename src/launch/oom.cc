#include "launch/oom.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace lockstep {
namespace {

// Lines of /proc/self/cgroup: "0::/path" (version 2), "4:memory:/path" (version 1).
std::vector<std::string> counter_files() {
  std::vector<std::string> files;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t path = line.find(":/");
    if (path == std::string::npos) continue;
    const std::string group = line.substr(path + 1);
    if (line.starts_with("0::")) files.push_back("/sys/fs/cgroup" + group + "/memory.events");
    if (line.find(":memory:") != std::string::npos)
      files.push_back("/sys/fs/cgroup/memory" + group + "/memory.oom_control");
  }
  std::erase_if(files, [](const std::string& file) { return !std::filesystem::exists(file); });
  // The whole machine's count, where no group's is to be had.
  if (files.empty()) files.emplace_back("/proc/vmstat");
  return files;
}

int64_t count_in(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t value = 0;
    if (words >> name >> value && name == "oom_kill") return value;
  }
  return 0;
}

}  // namespace

OomWatch::OomWatch() : OomWatch(counter_files()) {}
OomWatch::OomWatch(std::vector<std::string> files) : files_(std::move(files)) { seen_ = count(); }

int64_t OomWatch::count() const {
  // One kill may stand in several files: the sum tells whether there was one, not how many.
  int64_t sum = 0;
  for (const std::string& file : files_) sum += count_in(file);
  return sum;
}

bool OomWatch::killed() {
  const int64_t now = count();
  const bool risen = now > seen_;
  seen_ = now;
  return risen;
}

}  // namespace lockstep
