// The processors of this process and of the machine under it.
#pragma once
#include <filesystem>
#include <optional>

namespace lockstep {

struct Cores {
  // That this process may keep busy: a launcher or taskset may have bound it to a few, and a control group
  // may grant it the time of a few, however many it may run on.
  int usable = 1;
  int machine = 1;  // of the machine, or of the container where that has a cpuset or a quota of its own
  std::optional<double> quota = {};  // the tightest of the control groups, in cores
};

Cores available_cores(const std::filesystem::path& root = "/");

}  // namespace lockstep
