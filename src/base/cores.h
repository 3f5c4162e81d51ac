// The processors of this process and of the machine under it.
#pragma once
#include <filesystem>

namespace lockstep {

struct Cores {
  int usable = 1;   // that this process may run on: a launcher or taskset may have bound it to a few
  int machine = 1;  // of the machine, or of the container where that has a cpuset of its own
};

Cores available_cores(const std::filesystem::path& root = "/");

}  // namespace lockstep
