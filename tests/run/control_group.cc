#include "run/control_group.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct Hierarchy {
  fs::path group;  // of this process; empty: none is there
  bool version1 = false;
};

// Version 1 has one for a controller alone; version 2 has one for all.
Hierarchy hierarchy_of(const std::string& controller) {
  std::ifstream file("/proc/self/cgroup");
  Hierarchy found;
  for (std::string line; std::getline(file, line);) {
    const std::string path = line.substr(line.rfind(':') + 1);
    const size_t first = line.find(':') + 1;
    const std::string names = "," + line.substr(first, line.find(':', first) - first) + ",";
    if (names.find("," + controller + ",") != std::string::npos)
      return {"/sys/fs/cgroup/" + controller + path, true};
    if (line.starts_with("0::")) found = {"/sys/fs/cgroup" + path, false};
  }
  return found;
}

constexpr int64_t kPeriod = 100000;  // microseconds, the kernel's own default

}  // namespace

ControlGroup::ControlGroup(int64_t memory_bytes) {
  const std::string bytes = std::to_string(memory_bytes);
  make("memory", "memory.limit_in_bytes", "memory.max", bytes, bytes);
}

ControlGroup::ControlGroup(Quota quota) {
  const auto time = static_cast<int64_t>(quota.cores * static_cast<double>(kPeriod));
  make("cpu", "cpu.cfs_quota_us", "cpu.max", std::to_string(time), fmt::format("{} {}", time, kPeriod));
}

void ControlGroup::make(const std::string& controller, const std::string& version1,
                        const std::string& version2, const std::string& value1, const std::string& value2) {
  const Hierarchy hierarchy = hierarchy_of(controller);
  const fs::path folder = hierarchy.group / fmt::format("lockstep-test-{}", getpid());
  std::error_code error;
  if (hierarchy.group.empty() || !fs::create_directory(folder, error)) {
    why_not_ = fmt::format("cannot make the control group {}", folder.string());
    return;
  }
  folder_ = folder;
  std::ofstream limit(folder_ / (hierarchy.version1 ? version1 : version2));
  if (!(limit << (hierarchy.version1 ? value1 : value2) << std::flush))
    why_not_ = fmt::format("cannot set the limit of the control group {}", folder.string());
}

ControlGroup::~ControlGroup() {
  std::error_code error;
  if (!folder_.empty()) fs::remove(folder_, error);  // a plain rmdir: nobody is in it any more
}

}  // namespace lockstep
