#include "comm/wire/host_map.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep::wire {

HostMap::HostMap(const std::vector<std::string>& names) {
  for (size_t rank = 0; rank < names.size(); ++rank) {
    if (rank == 0 || names[rank] != names_.back()) {
      const auto before = std::find(names_.begin(), names_.end(), names[rank]);
      if (before != names_.end())
        throw UserError(
            "ranks {} and {} are on {}, but ranks between them are not; number the ranks host by host "
            "(Slurm: "
            "--distribution=block, OpenMPI: --map-by slot)",
            firsts_[static_cast<size_t>(before - names_.begin())], rank, names[rank]);
      names_.push_back(names[rank]);
      firsts_.push_back(static_cast<int>(rank));
    }
    host_of_.push_back(static_cast<int>(names_.size()) - 1);
  }
  firsts_.push_back(static_cast<int>(names.size()));
}

HostMap HostMap::one_each(int ranks) {
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks; ++rank) names.push_back(fmt::format("host {}", rank));
  return HostMap(names);
}

std::string HostMap::text() const {
  std::string sizes;
  for (int host = 0; host < hosts(); ++host) sizes += fmt::format("{}{}", host == 0 ? "" : " + ", size(host));
  return fmt::format("{} hosts with {} ranks", hosts(), sizes);
}

}  // namespace lockstep::wire
