#include "base/control_groups.h"

#include <fstream>
#include <string>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Whether a list such as "cpu,cpuacct" names it: cpuset is another.
bool names(std::string_view list, std::string_view controller) {
  while (true) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == controller) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

// The group's path in the hierarchy: the line "0::/path" of version 2, or "N:controllers:/path" of version 1.
std::string group_path(const fs::path& root, std::string_view controller) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string list = line.substr(first + 1, second - first - 1);
    const bool found = controller.empty() ? line.starts_with("0::") : names(list, controller);
    if (found) return line.substr(second + 1);
  }
  return "/";
}

void add_up_to_top(const fs::path& top, const std::string& path, std::vector<fs::path>& folders) {
  fs::path group = fs::path(path).relative_path();
  for (;;) {
    folders.push_back(top / group);
    if (group.empty()) return;
    group = group.parent_path();
  }
}

}  // namespace

std::vector<fs::path> control_groups(const fs::path& root, std::string_view controller) {
  std::vector<fs::path> folders;
  const fs::path top = root / "sys/fs/cgroup";
  add_up_to_top(top, group_path(root, {}), folders);
  add_up_to_top(top / controller, group_path(root, controller), folders);
  return folders;
}

}  // namespace lockstep
