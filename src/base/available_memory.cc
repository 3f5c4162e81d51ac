#include "base/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "base/control_groups.h"

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

// What a group leaves, in the files of either version.
void apply_limit(const fs::path& group, const char* limit_file, const char* used_file, int64_t& available) {
  const auto limit = number_in(group / limit_file);
  const auto used = number_in(group / used_file);
  if (limit && used) available = std::min(available, std::max<int64_t>(0, *limit - *used));
}

}  // namespace

int64_t available_memory_bytes(const fs::path& root) {
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  int64_t available = machine_available(root).value_or(kUnknown);
  for (const fs::path& group : control_groups(root, "memory")) {
    apply_limit(group, "memory.max", "memory.current", available);
    apply_limit(group, "memory.limit_in_bytes", "memory.usage_in_bytes", available);
  }
  return available == kUnknown ? 0 : available;
}

}  // namespace lockstep
