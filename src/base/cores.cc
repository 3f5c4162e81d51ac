#include "base/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>

#include "base/control_groups.h"

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

// A quota in cores: "150000 100000" of version 2, two files of version 1. Nothing where there is none ("max",
// -1).
std::optional<double> quota_of(const std::filesystem::path& group) {
  double quota = 0, period = 0;
  if (std::ifstream file(group / "cpu.max"); file >> quota >> period && quota > 0 && period > 0)
    return quota / period;
  std::ifstream quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

std::optional<double> tightest_quota(const std::filesystem::path& root) {
  std::optional<double> tightest;
  for (const std::filesystem::path& group : control_groups(root, "cpu"))
    if (const auto quota = quota_of(group)) tightest = std::min(tightest.value_or(*quota), *quota);
  return tightest;
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
  cores.quota = tightest_quota(root);
  if (cores.quota) {
    // The nearest: with more threads than that all of them are stopped for a part of every period.
    const int granted = static_cast<int>(std::lround(std::clamp(*cores.quota, 1.0, 1e6)));
    cores.usable = std::min(cores.usable, granted);
    cores.machine = std::min(cores.machine, granted);
  }
  return cores;
}

}  // namespace lockstep
