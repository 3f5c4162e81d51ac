#include "base/cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace lockstep {
namespace {

// How many processors a list of the kernel names: "0-3,8" has 5. Nothing where there is no such list.
std::optional<int> count_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  int count = 0;
  for (int first = 0; file >> first;) {
    int last = first;
    if (file.peek() == '-' && !(file.ignore() >> last)) return std::nullopt;
    if (last < first) return std::nullopt;
    count += last - first + 1;
    if (file.peek() != ',') break;
    file.ignore();
  }
  return count > 0 ? std::optional(count) : std::nullopt;
}

}  // namespace

Cores available_cores(const std::filesystem::path& root) {
  Cores cores;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) cores.usable = std::max(1, CPU_COUNT(&allowed));
  cores.machine = count_in(root / "sys/devices/system/cpu/online").value_or(cores.usable);
  // At the top of the hierarchy that this process sees: in a container, the container's.
  if (const auto container = count_in(root / "sys/fs/cgroup/cpuset.cpus.effective"))
    cores.machine = std::min(cores.machine, *container);
  cores.machine = std::max(cores.machine, cores.usable);
  return cores;
}

}  // namespace lockstep
