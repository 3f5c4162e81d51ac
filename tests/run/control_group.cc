#include "run/control_group.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct Hierarchy {
  fs::path group;     // of this process
  std::string limit;  // the file that sets it
};

// Version 1 has one for memory alone; version 2 has one for all.
Hierarchy memory_hierarchy() {
  std::ifstream file("/proc/self/cgroup");
  Hierarchy found;
  for (std::string line; std::getline(file, line);) {
    const std::string path = line.substr(line.rfind(':') + 1);
    if (line.find(":memory:") != std::string::npos)
      return {"/sys/fs/cgroup/memory" + path, "memory.limit_in_bytes"};
    if (line.starts_with("0::")) found = {"/sys/fs/cgroup" + path, "memory.max"};
  }
  return found;
}

}  // namespace

ControlGroup::ControlGroup(int64_t memory_bytes) {
  const Hierarchy hierarchy = memory_hierarchy();
  const fs::path folder = hierarchy.group / fmt::format("lockstep-test-{}", getpid());
  std::error_code error;
  if (hierarchy.limit.empty() || !fs::create_directory(folder, error)) {
    why_not_ = fmt::format("cannot make the control group {}", folder.string());
    return;
  }
  folder_ = folder;
  std::ofstream limit(folder_ / hierarchy.limit);
  if (!(limit << memory_bytes << std::flush))
    why_not_ = fmt::format("cannot limit the memory of the control group {}", folder.string());
}

ControlGroup::~ControlGroup() {
  std::error_code error;
  if (!folder_.empty()) fs::remove(folder_, error);  // a plain rmdir: nobody is in it any more
}

}  // namespace lockstep
