#include "base/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value) return value;  // "max" means no limit
  return std::nullopt;
}

std::optional<int64_t> machine_available(const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  for (std::string word; file >> word;) {
    int64_t kilobytes = 0;
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

// The group's path in the hierarchy: the line "0::/path" of version 2, or "N:...memory...:/path" of 1.
std::string group_path(const fs::path& root, bool version2) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t second = line.find(':', line.find(':') + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(0, second);
    if (version2 ? line.starts_with("0::") : controllers.find("memory") != std::string::npos)
      return line.substr(second + 1);
  }
  return "/";
}

// The tightest limit from the group up to the top; inside a container the path may not exist, and the top is
// the container's own.
void apply_limits(const fs::path& top, fs::path group, const char* limit_file, const char* used_file,
                  int64_t& available) {
  group = group.relative_path();
  for (;;) {
    const auto limit = number_in(top / group / limit_file);
    const auto used = number_in(top / group / used_file);
    if (limit && used) available = std::min(available, std::max<int64_t>(0, *limit - *used));
    if (group.empty()) return;
    group = group.parent_path();
  }
}

}  // namespace

int64_t available_memory_bytes(const fs::path& root) {
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  int64_t available = machine_available(root).value_or(kUnknown);
  const fs::path groups = root / "sys/fs/cgroup";
  apply_limits(groups, group_path(root, true), "memory.max", "memory.current", available);
  apply_limits(groups / "memory", group_path(root, false), "memory.limit_in_bytes", "memory.usage_in_bytes",
               available);
  return available == kUnknown ? 0 : available;
}

}  // namespace lockstep
